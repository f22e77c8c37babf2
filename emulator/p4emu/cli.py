"""The command `p4emu`: run a program as a switch, check it, or make its P4Info.

Parses arguments and prints; the work is elsewhere, and imported when a command needs it, so that
`--help` is fast. Errors of a program go to standard error as a C compiler's do. Exit status: 0, 1
for what went wrong, 2 for wrong arguments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from p4emu.run import ImpairOption, PortOption
    from p4emu.switch import Direction

app = typer.Typer(
    name="p4emu",
    help="A P4 software switch: compile P4_16 programs for v1model and run them.",
    epilog="Example: p4emu run prog.p4 --port 1=udp:127.0.0.1:9001 --grpc-addr 127.0.0.1:9559",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class P4InfoFormat(str, Enum):
    """How a P4Info is written."""

    text = "text"
    json = "json"
    binary = "binary"


_Program = Annotated[Path, typer.Argument(metavar="PROG.p4", help="The P4 source.")]
_Defines = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="NAME[=VALUE]", help="Define a preprocessor macro; repeatable."),
]
_Include = Annotated[
    list[Path] | None,
    typer.Option("-I", metavar="DIR", help="Search a folder for included files; repeatable."),
]


@app.command(
    epilog="Example: p4emu run prog.p4 -D LANES=64 --port 1=udp:127.0.0.1:9001 "
    "--port 2=udp:127.0.0.1:0 --grpc-addr 127.0.0.1:9559 --pcap captures"
)
def run(
    program: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PROG.p4]", help="The P4 source; without, a P4Runtime client sends one."
        ),
    ] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N=udp:HOST:PORT", help="Open switch port N; PORT 0 is any. Repeatable."
        ),
    ] = None,
    grpc_addr: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve P4Runtime here; PORT 0 is any.")
    ] = "127.0.0.1:9559",
    defines: _Defines = None,
    include: _Include = None,
    pcap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR|N=FILE",
            help="Capture all ports to DIR/portN.pcap, or port N to FILE. Repeatable.",
        ),
    ] = None,
    pcap_limit: Annotated[
        int, typer.Option(min=0, help="Frames after which a capture ends; 0 is no limit.")
    ] = 0,
    impair: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N[.rx|.tx]=RATES",
            help="Make the cable of port N, or all, lose, duplicate, corrupt or hold back frames: "
            "RATES such as loss:0.05,duplicate:0.02,corrupt:0.001,hold:0.05. Repeatable.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Impairments with the same seed do the same to the n-th frame.")
    ] = 0,
    device_id: Annotated[
        int, typer.Option(min=1, help="By which P4Runtime clients address the switch.")
    ] = 1,
    print_json: Annotated[
        bool,
        typer.Option("--print-json", "--json", help="Print the addresses as one line of JSON."),
    ] = False,
    exit_with_parent: Annotated[
        bool,
        typer.Option("--exit-with-parent", help="End when the process that started this ends."),
    ] = False,
) -> None:
    """Run a program as a switch, until SIGINT or SIGTERM."""
    from p4emu.run import RunOptions, run_switch

    ports = _ports(port or [], pcap or [])
    options = RunOptions(
        program=program,
        ports=ports,
        grpc_address=grpc_addr,
        defines=_macros(defines or []),
        include=include or [],
        pcap_limit=pcap_limit,
        impairments=_impairments(impair or [], [option.number for option in ports]),
        seed=seed,
        device_id=device_id,
        exit_with_parent=exit_with_parent,
    )
    run_switch(options, _print_json if print_json else _print_table)


@app.command(epilog="Example: p4emu check prog.p4 -D LANES=64 -I include")
def check(program: _Program, defines: _Defines = None, include: _Include = None) -> None:
    """Say what is wrong with a program. Exits with 1 if it has errors."""
    from p4emu import ir, lower
    from p4emu.frontend import check as check_program

    checked = check_program(program, include=include or [], defines=_macros(defines or []))
    ir.verify(lower.lower(checked))


@app.command(epilog="Example: p4emu p4info prog.p4 -o prog.p4info.txt")
def p4info(
    program: _Program,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to a file; without, to stdout.")
    ] = None,
    form: Annotated[P4InfoFormat, typer.Option("--format", help="How to write it.")] = (
        P4InfoFormat.text
    ),
    defines: _Defines = None,
    include: _Include = None,
) -> None:
    """Make a program's P4Info: what P4Runtime clients need to know of it."""
    from google.protobuf import json_format, text_format

    from p4emu.frontend import check as check_program
    from p4emu.p4info import p4info as make_p4info

    checked = check_program(program, include=include or [], defines=_macros(defines or []))
    message = make_p4info(checked)
    if form is P4InfoFormat.binary:
        data = message.SerializeToString(deterministic=True)
    elif form is P4InfoFormat.json:
        data = (json_format.MessageToJson(message) + "\n").encode()
    else:
        data = text_format.MessageToString(message).encode()
    if output is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        output.write_bytes(data)


# --- arguments -----------------------------------------------------------------------------------


def _macros(options: Sequence[str]) -> dict[str, str]:
    """-D NAME=VALUE to a mapping; a NAME alone is 1, as for a C compiler."""
    macros = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not name.isidentifier():
            raise typer.BadParameter(f"-D takes NAME or NAME=VALUE, got {option!r}")
        macros[name] = value if equals else "1"
    return macros


def _ports(options: Sequence[str], captures: Sequence[str]) -> list[PortOption]:
    from p4emu.run import PortOption

    files: dict[int, Path] = {}
    folder: Path | None = None
    for capture in captures:
        number, equals, file = capture.partition("=")
        if equals and number.isdecimal():
            files[int(number)] = Path(file)
        elif folder is None:
            folder = Path(capture)
        else:
            raise typer.BadParameter(f"--pcap takes one folder, got {folder} and {capture}")
    ports: dict[int, PortOption] = {}
    for option in options:
        text, equals, spec = option.partition("=")
        if not equals or not text.isdecimal():
            raise typer.BadParameter(
                f"--port takes N=udp:HOST:PORT, such as 1=udp:127.0.0.1:0; got {option!r}"
            )
        port = int(text)
        if port in ports:
            raise typer.BadParameter(f"--port {port} is given twice")
        default = None if folder is None else folder / f"port{port}.pcap"
        ports[port] = PortOption(port, spec, files.pop(port, default))
    if files:
        raise typer.BadParameter(f"--pcap {min(files)}=...: there is no --port {min(files)}")
    return list(ports.values())


_RATES = ("loss", "duplicate", "hold", "corrupt")
_IMPAIR_FORM = f"N=RATES or all=RATES, with RATES of {', '.join(_RATES)} such as loss:0.05,hold:0.1"


def _impairments(options: Sequence[str], ports: Sequence[int]) -> list[ImpairOption]:
    from p4emu.run import ImpairOption

    found: dict[tuple[int, Direction], ImpairOption] = {}
    both: tuple[Direction, Direction] = ("rx", "tx")
    for option in options:
        cables, _, text = option.partition("=")
        which, dot, side = cables.partition(".")
        directions = [d for d in both if d == side or not dot]
        numbers = [n for n in ports if which in ("all", str(n))]
        if not directions or not numbers:
            raise typer.BadParameter(
                f"--impair takes {_IMPAIR_FORM}; got {option!r}, and the ports are "
                f"{', '.join(map(str, ports)) or 'none'}"
            )
        rates = _rates(option, text)
        for number in numbers:
            for direction in directions:
                if (number, direction) in found:
                    raise typer.BadParameter(f"--impair {number}.{direction} is given twice")
                found[number, direction] = ImpairOption(number, direction, **rates)
    return list(found.values())


def _rates(option: str, text: str) -> dict[str, float]:
    rates: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition(":")
        try:
            rate = float(value)
        except ValueError:
            rate = -1.0
        if name not in _RATES or name in rates or not 0 <= rate <= 1:
            raise typer.BadParameter(f"--impair takes {_IMPAIR_FORM}; got {part!r} in {option!r}")
        rates[name] = rate
    return rates


# --- output --------------------------------------------------------------------------------------


def _print_json(grpc: str, ports: dict[int, str], device_id: int) -> None:
    line = {
        "grpc": grpc,
        "ports": {str(number): address for number, address in ports.items()},
        "device_id": device_id,
    }
    print(json.dumps(line), flush=True)


def _print_table(grpc: str, ports: dict[int, str], device_id: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"P4Runtime at {grpc}, device {device_id}. Ctrl-C ends the switch.")
    if ports:
        table = Table("switch port", "address")
        for number, address in ports.items():
            table.add_row(str(number), address)
        console.print(table)


def main() -> None:
    """Run the command line; what goes wrong is a message on standard error, and status 1."""
    from p4emu.errors import SwitchError
    from p4emu.frontend.diagnostics import CompileError

    try:
        app()
    except CompileError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except SwitchError as error:
        print(f"p4emu: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        print(f"p4emu: {name}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
