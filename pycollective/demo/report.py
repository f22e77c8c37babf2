"""What the demo leaves behind: the comparison on the screen, a picture, the figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.table import Table

from pycollective.demo.events import Epoch

LARGEST_ACCURACY_DIFFERENCE = 0.005
"""Half a percentage point."""
LEAST_ACCURACY = 0.95


@dataclass(frozen=True)
class Training:
    """One training's outcome; `parameters` are the final ones of rank 0, flat float32."""

    backend: str
    epochs: tuple[Epoch, ...]
    seconds: float
    parameters: npt.NDArray[np.float32]

    @property
    def accuracy(self) -> float:
        """On the test set, at the end."""
        return self.epochs[-1].accuracy


@dataclass(frozen=True)
class Comparison:
    """The training through the switch and the one over gloo."""

    switch: Training
    gloo: Training

    @property
    def parameter_difference(self) -> float:
        """The largest of any parameter."""
        return float(np.max(np.abs(self.switch.parameters - self.gloo.parameters)))

    @property
    def accuracy_difference(self) -> float:
        """As a share of the test set."""
        return abs(self.switch.accuracy - self.gloo.accuracy)

    @property
    def complaints(self) -> list[str]:
        """What is not as it must be; empty when all is well."""
        found = []
        # Accuracies are shares of whole images: a rounding error must not decide.
        if self.accuracy_difference > LARGEST_ACCURACY_DIFFERENCE + 1e-9:
            found.append(
                f"test accuracies must agree within {LARGEST_ACCURACY_DIFFERENCE:.1%}, found "
                f"{self.switch.accuracy:.2%} through the switch and {self.gloo.accuracy:.2%} over "
                "gloo"
            )
        found += [
            f"the test accuracy must exceed {LEAST_ACCURACY:.0%}, found {training.accuracy:.2%} "
            f"over {training.backend}"
            for training in (self.switch, self.gloo)
            if training.accuracy <= LEAST_ACCURACY
        ]
        return found


def table(comparison: Comparison) -> Table:
    """Both trainings side by side."""
    result = Table(title="the same training, twice", title_justify="left")
    result.add_column("")
    result.add_column("P4 switch", justify="right")
    result.add_column("gloo", justify="right")
    both = (comparison.switch, comparison.gloo)
    result.add_row("test accuracy", *(f"{training.accuracy:.2%}" for training in both))
    result.add_row("final loss", *(f"{training.epochs[-1].loss:.6f}" for training in both))
    result.add_row("seconds", *(f"{training.seconds:.1f}" for training in both))
    result.add_row(
        "largest parameter difference",
        f"{comparison.parameter_difference:.2e}",
        "",
        end_section=True,
    )
    return result


def write_metrics(
    path: Path, comparison: Comparison, ranks: int, counters: Mapping[str, int]
) -> None:
    """All figures as JSON; `counters` are the switch's own."""
    content = {
        "ranks": ranks,
        "parameters": int(comparison.switch.parameters.size),
        "largest_parameter_difference": comparison.parameter_difference,
        "accuracy_difference": comparison.accuracy_difference,
        "agree": not comparison.complaints,
        "switch_counters": dict(counters),
        "trainings": {
            training.backend: {
                "test_accuracy": training.accuracy,
                "seconds": training.seconds,
                "epochs": [asdict(epoch) for epoch in training.epochs],
            }
            for training in (comparison.switch, comparison.gloo)
        },
    }
    path.write_text(json.dumps(content, indent=2) + "\n")


def write_picture(path: Path, comparison: Comparison) -> None:
    """Loss and accuracy of both trainings over epochs, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    styles = ((comparison.switch, "P4 switch", "-", 2.5), (comparison.gloo, "gloo", "--", 1.2))
    for training, label, style, width in styles:
        numbers = [epoch.number for epoch in training.epochs]
        losses = [epoch.loss for epoch in training.epochs]
        accuracies = [100 * epoch.accuracy for epoch in training.epochs]
        left.plot(numbers, losses, style, linewidth=width, label=label)
        right.plot(numbers, accuracies, style, linewidth=width, label=label)
    left.set(title="training loss", xlabel="epoch", yscale="log")
    right.set(title="test accuracy (%)", xlabel="epoch")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
