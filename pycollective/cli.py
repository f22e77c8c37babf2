"""The command `pycollective`: demo, bench and doctor. Parses arguments; the work is elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pycollective.errors import PycollectiveError

app = typer.Typer(
    name="pycollective",
    help="Collectives inside a programmable switch: see it work, measure it, check this machine.",
    epilog="Example: pycollective demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(epilog="Example: pycollective demo --ranks 4 --out demo-out")
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the loss curves, the metrics and the capture.")
    ] = Path("demo-out"),
    ranks: Annotated[int, typer.Option(min=1, max=32, help="Processes that train.")] = 4,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training data.")] = 60,
) -> None:
    """Train a network through a P4 switch on this machine, and again over gloo."""
    from pycollective.demo.run import run

    raise typer.Exit(run(out, ranks, epochs))


@app.command(
    epilog="Example: pycollective bench all_reduce -b 4 -e 16M -f 4 -n 20 -w 5 --ranks 4 "
    "--compare gloo"
)
def bench(
    collective: Annotated[str, typer.Argument(help="all_reduce, broadcast or all_gather.")],
    begin: Annotated[str, typer.Option("-b", "--minbytes", help="Smallest size.")] = "4",
    end: Annotated[str, typer.Option("-e", "--maxbytes", help="Largest size.")] = "16M",
    factor: Annotated[
        int | None, typer.Option("-f", "--stepfactor", help="Multiply sizes by this.")
    ] = None,
    increment: Annotated[
        str | None, typer.Option("-i", "--stepbytes", help="Add this to sizes; 1M without -f.")
    ] = None,
    iterations: Annotated[
        int, typer.Option("-n", "--iters", help="Timed calls for each size.")
    ] = 20,
    warmup: Annotated[
        int, typer.Option("-w", "--warmup_iters", help="Calls before the timed ones.")
    ] = 5,
    checks: Annotated[
        int, typer.Option("-c", "--check", help="Calls for each size that are checked.")
    ] = 1,
    dtype: Annotated[str, typer.Option("-d", "--datatype", help="float or int32.")] = "float",
    op: Annotated[str, typer.Option("-o", "--op", help="sum.")] = "sum",
    ranks: Annotated[
        int, typer.Option(min=1, max=32, help="Processes to start; not under torchrun.")
    ] = 4,
    compare: Annotated[
        str | None, typer.Option(help="gloo: measure it in the same run, in turns.")
    ] = None,
    json_path: Annotated[
        str | None, typer.Option("--json", help="File for the figures; - for standard output.")
    ] = None,
    csv_path: Annotated[
        str | None, typer.Option("--csv", help="File for the figures; - for standard output.")
    ] = None,
) -> None:
    """Measure a collective in nccl-tests' columns, every result checked.

    Exits with 1 when a result was wrong, with 2 when it could not be measured.
    """
    from pycollective.bench import plan
    from pycollective.bench.launch import run

    measured = plan.Plan(
        collective=plan.collective(collective),
        sizes=plan.sizes(
            plan.parse_size(begin),
            plan.parse_size(end),
            factor,
            None if increment is None else plan.parse_size(increment),
        ),
        iterations=iterations,
        warmup=warmup,
        checks=checks,
        dtype=dtype,
        op=op,
        compare=compare,
    )
    raise typer.Exit(run(measured, ranks, json_path, csv_path))


@app.command(epilog="Example: pycollective doctor")
def doctor() -> None:
    """Say what is wrong on this machine, and what to do. Exits with 1 if something is."""
    from pycollective.doctor import run

    raise typer.Exit(run())


def main() -> None:
    """Runs the command line; what goes wrong is one message on standard error, and status 2."""
    try:
        app()
    except PycollectiveError as error:
        print(f"pycollective: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
