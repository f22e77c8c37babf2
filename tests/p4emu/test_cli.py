"""The command line as users run it: processes, what they print, and how they end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format, text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4rt
from p4.v1 import p4runtime_pb2_grpc

import p4emu

TIMEOUT = 60.0
PROGRAM = Path(__file__).parent / "p4runtime" / "p4runtime_objects.p4"


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "p4emu", *map(str, args)]


def finished(*args: object) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(command(*args), capture_output=True, text=True, timeout=TIMEOUT)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], TIMEOUT)
    assert ready, "nothing was printed"
    return process.stdout.readline()


@contextmanager
def running(*args: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A `p4emu run` with an ephemeral gRPC port."""
    process = subprocess.Popen(
        command("run", *args, "--grpc-addr", "127.0.0.1:0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=TIMEOUT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_says_its_addresses_serves_there_and_ends_on_a_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    pcap = tmp_path / "captures"
    with running(PROGRAM, "--port", "1=udp:127.0.0.1:0", "--port", "7=udp:127.0.0.1:0",
                 "--device-id", 4, "--print-json", "--pcap", pcap) as process:  # fmt: skip
        ready = json.loads(first_line(process))
        assert ready.keys() == {"grpc", "ports", "device_id"}
        assert (sorted(ready["ports"]), ready["device_id"]) == (["1", "7"], 4)
        with grpc.insecure_channel(ready["grpc"], [("grpc.enable_http_proxy", 0)]) as channel:
            stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
            request = p4rt.GetForwardingPipelineConfigRequest(device_id=4)
            config = stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT).config
        assert config.p4info == p4emu.compile(PROGRAM).p4info
        assert config.p4_device_config == PROGRAM.read_bytes()
        # The program's own table sends nibble 2 to port 2, which is not there, and 1 to port 1.
        frame = bytes.fromhex("02000000000102000000000208000a00000100010007")
        host, port = ready["ports"]["7"].removeprefix("udp:").rsplit(":", 1)
        back = ready["ports"]["1"].removeprefix("udp:").rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, \
             socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as seven:  # fmt: skip
            one.settimeout(TIMEOUT)
            one.sendto(frame, (back[0], int(back[1])))  # port 1 learns where its peer is
            assert one.recv(2048) == frame
            seven.sendto(frame, (host, int(port)))
            assert one.recv(2048) == frame
        process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, errors) == (0, "")
    assert sorted(path.name for path in pcap.iterdir()) == ["port1.pcap", "port7.pcap"]
    assert (pcap / "port7.pcap").read_bytes().endswith(frame)


def test_run_makes_cables_bad_as_asked() -> None:
    """Port 1 doubles what leaves it, port 2 loses all that comes in, port 3 is left alone."""
    frame = bytes.fromhex("02000000000102000000000208000a00000100010007")  # the program: to port 1
    ports = [arg for n in (1, 2, 3) for arg in ("--port", f"{n}=udp:127.0.0.1:0")]
    with running(PROGRAM, *ports, "--json", "--impair", "1.tx=duplicate:1", "--impair",
                 "2.rx=loss:1") as process, ExitStack() as sockets:  # fmt: skip
        addresses = json.loads(first_line(process))["ports"]
        peers = []
        for n in "123":
            host, port = addresses[n].removeprefix("udp:").rsplit(":", 1)
            peer = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            peer.settimeout(TIMEOUT)
            peer.connect((host, int(port)))
            peers.append(peer)
        one, two, three = peers
        one.send(frame + b"one")  # port 1 learns where its peer is
        assert [one.recv(2048) for _ in range(2)] == [frame + b"one"] * 2
        two.send(frame + b"two")
        three.send(frame + b"three")
        assert [one.recv(2048) for _ in range(2)] == [frame + b"three"] * 2
        one.send(frame + b"end")
        assert one.recv(2048) == frame + b"end"


def test_run_without_a_program_waits_for_one(tmp_path: Path) -> None:
    capture = tmp_path / "one.pcap"
    with running("--port", "3=udp:127.0.0.1:0", "--pcap", f"3={capture}") as process:
        assert "P4Runtime at 127.0.0.1:" in first_line(process)
        process.terminate()
        output, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, errors) == (0, "")
        assert "udp:127.0.0.1:" in output
    assert capture.exists()


def test_run_ends_with_the_process_that_started_it() -> None:
    parent = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen({command('run', '--grpc-addr', '127.0.0.1:0', '--json')!r}"
        " + ['--exit-with-parent'], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        child = int(first_line(process))
        handle = os.pidfd_open(child)
        try:
            process.kill()
            ended, _, _ = select.select([handle], [], [], TIMEOUT)
            assert ended, "the switch outlived the process that started it"
        finally:
            os.close(handle)


def test_run_says_what_is_wrong_with_an_address_and_exits_with_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = finished("run", "--grpc-addr", address)
        assert (result.returncode, result.stdout) == (1, "")
        assert f"p4emu: cannot listen at {address}: another program uses the port" in result.stderr
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        spec = f"udp:127.0.0.1:{udp.getsockname()[1]}"
        result = finished("run", "--grpc-addr", "127.0.0.1:0", "--port", f"1={spec}")
        assert result.returncode == 1
        assert result.stderr.startswith("p4emu: ")
        assert "Traceback" not in result.stderr
    result = finished("run", "--grpc-addr", "127.0.0.1:0", "--port", "1=tcp:127.0.0.1:0")
    assert result.returncode == 1
    assert "udp:HOST:PORT" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["run", "--port", "udp:127.0.0.1:0"],
        ["run", "--port", "1=udp:127.0.0.1:0", "--port", "1=udp:127.0.0.1:0"],
        ["run", "--pcap", "2=x.pcap"],
        ["run", "--device-id", "0"],
        *(
            ["run", "--port", "1=udp:127.0.0.1:0", "--impair", impair]
            for impair in (
                "1",
                "1=",
                "2=loss:0.1",
                "1.up=loss:0.1",
                "1=loss:2",
                "1=loss:nan",
                "1=delay:0.1",
                "1=loss:0.1,loss:0.1",
            )
        ),
        ["run", "--port", "1=udp:127.0.0.1:0", "--impair", "1.rx=loss:1", "--impair", "all=loss:1"],
        ["check"],
        ["check", PROGRAM, "-D", "1=2"],
        ["p4info", PROGRAM, "--format", "yaml"],
        ["nonsense"],
    ],
)
def test_wrong_arguments_exit_with_2(args: list[object]) -> None:
    result = finished(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Error" in result.stderr


def test_check_is_silent_about_a_good_program() -> None:
    result = finished("check", PROGRAM)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_check_shows_errors_as_a_compiler_does_and_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "wrong.p4"
    path.write_text(PROGRAM.read_text().replace("hdr.key.small", "hdr.key.smell", 1))
    lines = path.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if "smell" in line)
    for name in ("check", "p4info", "run"):
        result = finished(name, path)
        assert (result.returncode, result.stdout) == (1, "")
        message, source, caret = result.stderr.splitlines()[:3]
        assert message.startswith(f"{path}:{number}:")
        assert ": error: " in message
        column = int(message.split(":")[2])
        assert source.endswith(lines[number - 1])
        assert caret.index("^") - source.index(lines[number - 1]) == column - 1


def test_check_takes_macros_and_include_folders(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "size.p4").write_text("#define SIZE (BASE + 1)\n")
    path = tmp_path / "prog.p4"
    path.write_text("#include <size.p4>\n" + PROGRAM.read_text().replace("size = 4", "size = SIZE"))
    assert finished("check", path).returncode == 1
    args = [path, "-I", tmp_path / "include", "-D", "BASE=6"]
    assert finished("check", *args).returncode == 0
    info = text_format.Parse(finished("p4info", *args).stdout, p4info_pb2.P4Info())
    assert {t.preamble.name: t.size for t in info.tables}["I.exact_table"] == 7


def test_a_missing_file_is_named() -> None:
    for name in ("check", "p4info", "run"):
        result = finished(name, "/nowhere/prog.p4")
        assert result.returncode == 1
        assert "/nowhere/prog.p4" in result.stderr
        assert "Traceback" not in result.stderr


def test_p4info_is_the_same_in_all_forms(tmp_path: Path) -> None:
    expected = p4emu.compile(PROGRAM).p4info
    text = finished("p4info", PROGRAM)
    assert text.returncode == 0
    assert text_format.Parse(text.stdout, p4info_pb2.P4Info()) == expected
    as_json = finished("p4info", PROGRAM, "--format", "json")
    assert json_format.Parse(as_json.stdout, p4info_pb2.P4Info()) == expected
    out = tmp_path / "info.bin"
    binary = finished("p4info", PROGRAM, "--format", "binary", "-o", out)
    assert (binary.returncode, binary.stdout) == (0, "")
    assert p4info_pb2.P4Info.FromString(out.read_bytes()) == expected
    wrong = finished("p4info", PROGRAM, "-o", tmp_path / "none" / "x")
    assert wrong.returncode == 1
    assert "No such file" in wrong.stderr


@pytest.mark.parametrize("name", [(), ("run",), ("check",), ("p4info",)])
def test_help_has_an_example_and_loads_neither_llvm_nor_grpc(name: tuple[str, ...]) -> None:
    script = (
        "import sys; from p4emu.cli import main\n"
        f"sys.argv = ['p4emu', *{name!r}, '--help']\n"
        "try: main()\n"
        "finally:\n"
        "    heavy = {'llvmlite', 'grpc', 'p4', 'p4emu._runtime'} & sys.modules.keys()\n"
        "    assert not heavy, heavy\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "Example: p4emu" in result.stdout
