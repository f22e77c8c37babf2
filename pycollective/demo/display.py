"""The live view of the demo's two trainings: one table that grows by a line for each epoch."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pycollective.demo.events import Epoch

_SHOWN = 12
"""Epochs in the table; older ones scroll away."""


class Display:
    """Shows the epochs of one training. A context manager."""

    def __init__(self, console: Console, backend: str, epochs: int) -> None:
        self._backend = backend
        self._epochs: list[Epoch] = []
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._task = self._progress.add_task(f"{backend}: starting", total=epochs)
        self._console = console
        self._live = Live(self._render(), console=console, refresh_per_second=8)

    def training(self) -> None:
        """Says that the ranks have begun."""
        self._progress.update(self._task, description=f"{self._backend}: training")

    def add(self, epoch: Epoch) -> None:
        """Shows one more epoch."""
        self._epochs.append(epoch)
        self._progress.update(self._task, completed=epoch.number)
        self._live.update(self._render())

    def _render(self) -> RenderableType:
        table = Table(title=f"training over {self._backend}", title_justify="left")
        for heading in ("epoch", "loss", "accuracy", "algbw", "packets", "retransmissions"):
            table.add_column(heading, justify="right")
        for epoch in self._epochs[-_SHOWN:]:
            table.add_row(
                str(epoch.number),
                f"{epoch.loss:.4f}",
                f"{epoch.accuracy:.2%}",
                f"{epoch.algbw * 1e3:.1f} MB/s",
                _count(epoch.packets),
                _count(epoch.retransmissions),
            )
        return Group(table, self._progress)

    def __enter__(self) -> Display:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()
        if not self._console.is_terminal:
            self._console.line()  # which Live leaves to the terminal's cursor


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
