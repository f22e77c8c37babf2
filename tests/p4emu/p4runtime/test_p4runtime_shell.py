"""p4runtime-shell, unmodified, against `p4emu run` as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from p4runtime_rig import OBJECTS

from p4emu.p4runtime import make_bundle

SESSION = """
import sys
import p4runtime_sh.shell as sh

address, p4info, config = sys.argv[1:]
sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1),
         config=sh.FwdPipeConfig(p4info, config))
try:
    print(">", "tables", *sorted(table.name for table in sh.P4Objects(sh.P4Type.table)))

    entry = sh.TableEntry("I.exact_table")(action="I.forward")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    entry.match["hdr.key.small"] = "0x123"
    entry.action["port"] = "5"
    entry.insert()
    entry.read(lambda e: print(">", "exact", e.match["hdr.ethernet.dst"].exact.value.hex(),
                               e.match["hdr.key.small"].exact.value.hex(),
                               e.action.action_name, e.action["port"].value.hex()))

    entry = sh.TableEntry("I.lpm_table")(action="I.forward")
    entry.match["hdr.key.address"] = "10.1.0.0/16"
    entry.action["port"] = "6"
    entry.insert()
    entry.action["port"] = "7"
    entry.modify()
    for e in sh.TableEntry("I.lpm_table").read():
        m = e.match["hdr.key.address"].lpm
        print(">", "lpm", m.value.hex(), m.prefix_len, e.action["port"].value.hex())

    entry = sh.TableEntry("I.ternary_table")(action="I.drop", priority=9)
    entry.match["hdr.key.address"] = "10.0.0.1&&&255.0.0.255"
    entry.match["hdr.key.number"] = "5..7"
    entry.match["hdr.key.nibble"] = "1"
    entry.insert()
    for e in sh.TableEntry("I.ternary_table").read():
        m = e.match["hdr.key.address"].ternary
        r = e.match["hdr.key.number"].range
        print(">", "ternary", m.value.hex(), m.mask.hex(), r.low.hex(), r.high.hex(),
              e.match["hdr.key.nibble"].optional.value.hex(), e.priority)
    entry.delete()
    print(">", "left", len(list(sh.TableEntry("I.ternary_table").read())))

    counter = sh.CounterEntry("I.seen")
    counter.index = 2
    counter.packet_count = 41
    counter.byte_count = 1000
    counter.modify()
    for e in sh.CounterEntry("I.seen").read():
        print(">", "counter", e.index, e.packet_count, e.byte_count)

    group = sh.MulticastGroupEntry(3)
    group.add(1, 1).add(2, 1)
    group.insert()
    group.read(lambda g: print(">", "group", g.group_id,
                               [(r.port, r.instance) for r in g.replicas]))
    try:
        group.insert()
    except Exception as error:
        print(">", "refused", "ALREADY_EXISTS" in str(error))
finally:
    sh.teardown()
"""


@pytest.fixture
def address() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "p4emu", "run", "--grpc-addr", "127.0.0.1:0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["grpc"]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_p4runtime_shell_loads_a_program_and_uses_every_object(
    address: str, tmp_path: Path
) -> None:
    p4info, config = make_bundle(OBJECTS, defines={"UNUSED": "1"})  # an archive, for the macro
    (tmp_path / "p4info.txt").write_text(str(p4info))
    (tmp_path / "config.zip").write_bytes(config)
    result = subprocess.run(
        [sys.executable, "-c", SESSION, address, tmp_path / "p4info.txt", tmp_path / "config.zip"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    # The shell prints of its own, too.
    lines = [line[2:] for line in result.stdout.splitlines() if line.startswith("> ")]
    assert lines == [
        "tables I.const_table I.exact_table I.lpm_table I.ternary_table",
        "exact 020000000001 0123 I.forward 05",
        "lpm 0a010000 16 07",
        "ternary 0a000001 ff0000ff 05 07 01 9",
        "left 0",
        "counter 0 0 0",
        "counter 1 0 0",
        "counter 2 41 1000",
        "counter 3 0 0",
        "group 3 [(1, 1), (2, 1)]",
        "refused True",
    ]
