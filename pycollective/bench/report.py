"""A benchmark's figures as text: the table of nccl-tests, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict

from pycollective.bench.plan import Plan, Row

_COLUMNS = ("size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong")
_UNITS = ("(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "")
_WIDTHS = (12, 12, 8, 8, 11, 9, 9, 8)
_OTHER_WIDTHS = (11, 9)


def heading(plan: Plan, world_size: int) -> str:
    """The lines above the table."""
    lines = [
        f"# pycollective {plan.collective}, {world_size} ranks, {plan.iterations} iterations, "
        f"{plan.warmup} warmup, {plan.checks} checked"
    ]
    for names, other in ((_COLUMNS, (plan.compare or "", "ratio")), (_UNITS, ("(us)", ""))):
        cells = _cells(names, _WIDTHS)
        if plan.compare is not None:
            cells += _cells(other, _OTHER_WIDTHS)
        lines.append("#" + cells[1:])
    return "\n".join(lines)


def line(row: Row) -> str:
    """One line of the table."""
    cells = _cells(
        (
            str(row.size),
            str(row.count),
            row.dtype,
            row.op,
            f"{row.time:.1f}",
            f"{row.algbw:.4f}",
            f"{row.busbw:.4f}",
            str(row.wrong),
        ),
        _WIDTHS,
    )
    if row.other_time is not None and row.ratio is not None:
        cells += _cells((f"{row.other_time:.1f}", f"{row.ratio:.2f}x"), _OTHER_WIDTHS)
    return cells


def summary(rows: Sequence[Row]) -> str:
    """The lines below the table."""
    wrong = sum(row.wrong for row in rows)
    mean = sum(row.busbw for row in rows) / len(rows) if rows else 0.0
    verdict = "OK" if wrong == 0 else "FAILED"
    return f"# wrong elements: {wrong} {verdict}\n# mean bus bandwidth: {mean:.3f} GB/s"


def as_json(plan: Plan, world_size: int, rows: Sequence[Row]) -> str:
    """Plan and rows as one JSON object."""
    content = {
        "plan": asdict(plan),
        "world_size": world_size,
        "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
    }
    return json.dumps(content, indent=2) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV with a heading."""
    text = io.StringIO()
    names = [*Row.__dataclass_fields__, "ratio"]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(row), "ratio": row.ratio} for row in rows)
    return text.getvalue()


def _cells(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))
