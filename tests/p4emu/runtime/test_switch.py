"""`p4emu.Switch`: state by name, ports, captures, and what it refuses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

import p4emu
from p4emu import CounterValue, Match, SwitchError, TableEntry

PROGRAM = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> ether_type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<16>>(4) last_type;
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets_and_bytes) hits;
    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) { standard.egress_spec = port; }
    action flood(bit<16> group) { standard.mcast_grp = group; }
    table l2 {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; drop; }
        default_action = drop();
        size = 3;
        counters = hits;
    }
    table acl {
        key = { hdr.ethernet.src: ternary; hdr.ethernet.ether_type: range; }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    table routes {
        key = { hdr.ethernet.dst: lpm; }
        actions = { forward; NoAction; }
        const default_action = NoAction();
    }
    table fixed {
        key = { hdr.ethernet.ether_type: exact; }
        actions = { drop; NoAction; }
        const entries = { 0x6666: drop(); }
    }
    apply {
        seen.count((bit<32>)standard.ingress_port);
        last_type.write((bit<32>)standard.ingress_port, hdr.ethernet.ether_type);
        if (!routes.apply().hit) { l2.apply(); }
        acl.apply();
        fixed.apply();
    }
}
control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}
control Sum(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), Check(), In(), Out(), Sum(), D()) main;
"""

A, B, ALL = 0x020000000001, 0x020000000002, 0xFFFFFFFFFFFF


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> p4emu.Program:
    path = tmp_path_factory.mktemp("p4") / "switch.p4"
    path.write_text(PROGRAM)
    return p4emu.compile(path)


@pytest.fixture
def switch(program: p4emu.Program) -> Iterator[p4emu.Switch]:
    with p4emu.Switch(program) as switch:
        yield switch


def frame(dst: int, src: int = A, ether_type: int = 0x0800, payload: bytes = b"payload") -> bytes:
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ether_type.to_bytes(2, "big") + payload


def forward(dst: int, port: int) -> TableEntry:
    return TableEntry((Match(dst),), "In.forward", {"port": port})


def refused(code: str, match: str) -> pytest.RaisesExc[SwitchError]:
    return pytest.RaisesExc(SwitchError, match=match, check=lambda error: error.code == code)


def test_entries_decide_where_frames_go_and_are_read_back(switch: p4emu.Switch) -> None:
    switch.insert("In.l2", forward(B, 2))
    assert switch.process(1, frame(B)) == [(2, frame(B))]
    assert switch.entries("In.l2") == [forward(B, 2)]
    switch.modify("In.l2", forward(B, 3))
    assert switch.process(1, frame(B)) == [(3, frame(B))]
    switch.delete("In.l2", [Match(B)])
    assert switch.process(1, frame(B)) == []
    assert switch.entries("In.l2") == []


def test_multicast_makes_a_copy_for_each_replica(switch: p4emu.Switch) -> None:
    switch.set_multicast_group(5, [(1, 1), (2, 2), (2, 3)])
    switch.set_default("In.l2", "In.flood", {"group": 5})
    assert switch.process(9, frame(ALL)) == [(1, frame(ALL)), (2, frame(ALL)), (2, frame(ALL))]
    assert switch.multicast_groups() == {5: [(1, 1), (2, 2), (2, 3)]}
    switch.delete_multicast_group(5)
    assert switch.process(9, frame(ALL)) == []


def test_ternary_and_range_by_priority_and_lpm_by_length(switch: p4emu.Switch) -> None:
    switch.set_default("In.l2", "In.forward", {"port": 7})
    deny = TableEntry((Match(A, 0xFF), Match(0x800, 0x8FF)), "In.drop", {}, 10)
    allow = TableEntry((Match(A, ALL), Match(0x806, 0x806)), "NoAction", {}, 20)
    switch.insert("In.acl", deny)
    switch.insert("In.acl", allow)
    assert switch.process(1, frame(B, ether_type=0x0800)) == []
    assert switch.process(1, frame(B, ether_type=0x0900)) != []
    assert switch.process(1, frame(B, ether_type=0x0806)) != []
    assert switch.process(1, frame(B, src=B)) != []
    normalised = TableEntry((Match(A & 0xFF, 0xFF), Match(0x800, 0x8FF)), "In.drop", {}, 10)
    assert sorted(switch.entries("In.acl"), key=lambda e: e.priority) == [normalised, allow]

    wide = TableEntry((Match(0x02 << 40, 0xFF << 40),), "In.forward", {"port": 3})
    narrow = TableEntry((Match(B, ALL),), "In.forward", {"port": 4})
    switch.insert("In.routes", wide)
    switch.insert("In.routes", narrow)
    src = {"src": B}
    assert [switch.process(1, frame(dst, **src))[0][0] for dst in (B, A, 1)] == [4, 3, 7]


def test_counters_registers_and_direct_counters(switch: p4emu.Switch) -> None:
    switch.insert("In.l2", forward(B, 2))
    for _ in range(3):
        switch.process(1, frame(B, ether_type=0x1234))
    size = len(frame(B))
    assert switch.read_counter("In.seen", 1) == CounterValue(3, 3 * size)
    assert switch.read_direct_counter("In.l2", [Match(B)]) == CounterValue(3, 3 * size)
    assert switch.read_registers("In.last_type") == [0, 0x1234, 0, 0]
    switch.write_register("In.last_type", 2, 0xFFFF)
    assert switch.read_register("In.last_type", 2) == 0xFFFF
    switch.write_counter("In.seen", 1, CounterValue(7, 8))
    assert switch.read_counter("In.seen", 1) == CounterValue(7, 8)
    switch.process(9, frame(B))  # index 9 is beyond both arrays
    assert [switch.read_counter("In.seen", i).packets for i in range(4)] == [0, 7, 0, 0]


def test_const_entries_act_and_cannot_be_changed(switch: p4emu.Switch) -> None:
    switch.set_default("In.l2", "In.forward", {"port": 7})
    assert switch.process(1, frame(B, ether_type=0x6666)) == []
    with refused("PERMISSION_DENIED", "entries of table In.fixed are const"):
        switch.delete("In.fixed", [Match(0x6666)])
    with refused("PERMISSION_DENIED", "default action of table In.routes is const"):
        switch.set_default("In.routes", "In.forward", {"port": 1})


def test_loading_a_program_begins_with_empty_state(
    switch: p4emu.Switch, program: p4emu.Program
) -> None:
    switch.insert("In.l2", forward(B, 2))
    switch.set_multicast_group(5, [(1, 1)])
    switch.process(1, frame(B))
    switch.load(program)
    assert switch.entries("In.l2") == []
    assert switch.multicast_groups() == {}
    assert switch.read_counter("In.seen", 1) == CounterValue(0, 0)
    assert switch.read_registers("In.last_type") == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("code", "match", "call"),
    [
        ("NOT_FOUND", "no table 'In.l3'; the program has In.acl, In.fixed, In.l2, In.routes",
         lambda s: s.insert("In.l3", forward(B, 1))),
        ("INVALID_ARGUMENT", "no action 'In.fwd'; it has In.drop, In.flood, In.forward",
         lambda s: s.insert("In.l2", TableEntry((Match(B),), "In.fwd"))),
        ("INVALID_ARGUMENT", r"takes \(port\); got \(\)",
         lambda s: s.insert("In.l2", TableEntry((Match(B),), "In.forward"))),
        ("INVALID_ARGUMENT", r"In.forward\(port\): 0x200 does not fit bit<9>",
         lambda s: s.insert("In.l2", forward(B, 512))),
        ("INVALID_ARGUMENT", "key hdr.ethernet.dst: 0x1000000000000 does not fit bit<48>",
         lambda s: s.insert("In.l2", forward(1 << 48, 1))),
        ("INVALID_ARGUMENT", "got 2 fields",
         lambda s: s.insert("In.l2", TableEntry((Match(1), Match(2)), "In.drop"))),
        ("INVALID_ARGUMENT", "an exact field takes no mask",
         lambda s: s.insert("In.l2", TableEntry((Match(1, 1),), "In.drop"))),
        ("INVALID_ARGUMENT", "0xf is no prefix",
         lambda s: s.insert("In.routes", TableEntry((Match(1, 0xF),), "NoAction"))),
        ("INVALID_ARGUMENT", r"the range 2..1 is empty",
         lambda s: s.insert("In.acl", TableEntry((Match(1), Match(2, 1)), "In.drop"))),
        ("NOT_FOUND", "no entry", lambda s: s.modify("In.l2", forward(B, 1))),
        ("NOT_FOUND", "no entry", lambda s: s.delete("In.l2", [Match(B)])),
        ("NOT_FOUND", "no counter 'x'; the program has In.seen",
         lambda s: s.read_counter("x", 0)),
        ("OUT_OF_RANGE", "counter index 4 is not below its size of 4",
         lambda s: s.read_counter("In.seen", 4)),
        ("OUT_OF_RANGE", "index -1", lambda s: s.read_counter("In.seen", -1)),
        ("OUT_OF_RANGE", "register index 4 is not below its size of 4",
         lambda s: s.write_register("In.last_type", 4, 0)),
        ("INVALID_ARGUMENT", "does not fit bit<16>",
         lambda s: s.write_register("In.last_type", 0, 0x10000)),
        ("INVALID_ARGUMENT", "group 0 means no group",
         lambda s: s.set_multicast_group(0, [])),
        ("INVALID_ARGUMENT", r"port 511 is not in 0..510",
         lambda s: s.set_multicast_group(1, [(511, 0)])),
        ("NOT_FOUND", "no multicast group 77", lambda s: s.delete_multicast_group(77)),
        ("INVALID_ARGUMENT", "such as udp:127.0.0.1:0; got 'tcp:x'",
         lambda s: s.add_port(1, "tcp:x")),
        ("INVALID_ARGUMENT", "needs an IPv4 address", lambda s: s.add_port(1, "udp:nowhere:0")),
        ("INVALID_ARGUMENT", "port numbers go from 0 to 510; got 511",
         lambda s: s.add_port(511, "udp:127.0.0.1:0")),
        ("INVALID_ARGUMENT", "port numbers go from 0 to 510; got -1",
         lambda s: s.add_port(-1, "udp:127.0.0.1:0")),
        ("NOT_FOUND", "there is no port 4", lambda s: s.impair(4, "rx", loss=0.1)),
        ("NOT_FOUND", "there is no port -4", lambda s: s.impair(-4, "rx", loss=0.1)),
        ("INVALID_ARGUMENT", "a probability is from 0 to 1; got 1.5",
         lambda s: s.impair(4, "tx", duplicate=1.5)),
        ("INVALID_ARGUMENT", "a direction is rx .* or tx .*; got 'up'",
         lambda s: s.impair(4, "up", loss=1)),
        ("INVALID_ARGUMENT", "got -1 and 0.002", lambda s: s.impair(4, "rx", hold_frames=-1)),
        ("INVALID_ARGUMENT", "got 50 and inf",
         lambda s: s.impair(4, "rx", hold_limit=float("inf"))),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_would(
    switch: p4emu.Switch, code: str, match: str, call: object
) -> None:
    with refused(code, match):
        call(switch)  # type: ignore[operator]


def test_a_table_has_its_declared_size(switch: p4emu.Switch) -> None:
    for dst in range(3):
        switch.insert("In.l2", forward(dst, 1))
    with refused("RESOURCE_EXHAUSTED", "table In.l2 is full: its size is 3"):
        switch.insert("In.l2", forward(3, 1))
    with refused("ALREADY_EXISTS", "In.l2 already has"):
        switch.insert("In.l2", forward(1, 1))
    switch.delete("In.l2", [Match(2)])
    switch.insert("In.l2", forward(3, 1))


def test_a_switch_without_a_program_says_so() -> None:
    with p4emu.Switch() as switch:
        assert switch.statistics()["processed"] == 0
        with refused("FAILED_PRECONDITION", "has no program"):
            switch.process(1, frame(B))
        with refused("FAILED_PRECONDITION", "has no program"):
            switch.entries("In.l2")


def test_a_run_time_of_another_version_is_refused(
    program: p4emu.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("p4emu._runtime.ABI_VERSION", 99)
    with refused("FAILED_PRECONDITION", "version 99 is installed; install the package again"):
        p4emu.Switch(program)


def udp_socket() -> socket.socket:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.bind(("127.0.0.1", 0))
    client.settimeout(10)
    return client


def address(spec: str) -> tuple[str, int]:
    _, host, port = spec.split(":")
    return host, int(port)


def test_udp_ports_carry_a_frame_a_datagram_and_captures_record_both_directions(
    switch: p4emu.Switch, tmp_path: Path
) -> None:
    switch.insert("In.l2", forward(A, 1))
    switch.insert("In.l2", forward(B, 2))
    capture = tmp_path / "port1.pcap"
    ports = {
        1: switch.add_port(1, "udp:127.0.0.1:0", pcap=str(capture)),
        2: switch.add_port(2, "udp:127.0.0.1:0"),
    }
    switch.start()
    with udp_socket() as one, udp_socket() as two:
        two.sendto(frame(0, B), address(ports[2]))  # nobody's, but now port 2 knows its peer
        one.sendto(frame(B, A, payload=b"there"), address(ports[1]))
        assert two.recv(2048) == frame(B, A, payload=b"there")
        two.sendto(frame(A, B, payload=b"and back"), address(ports[2]))
        assert one.recv(2048) == frame(A, B, payload=b"and back")
    switch.stop()

    recorded = [bytes(packet) for packet in rdpcap(str(capture))]
    assert recorded == [frame(B, A, payload=b"there"), frame(A, B, payload=b"and back")]
    assert Ether(recorded[0])[Raw].load == b"there"
    statistics = switch.ports()[1].statistics
    assert (statistics["rx_frames"], statistics["tx_frames"]) == (1, 1)


def test_a_capture_ends_at_its_limit(switch: p4emu.Switch, tmp_path: Path) -> None:
    switch.set_default("In.l2", "In.forward", {"port": 1})
    capture = tmp_path / "short.pcap"
    spec = switch.add_port(1, "udp:127.0.0.1:0", pcap=str(capture), pcap_limit=3)
    switch.start()
    with udp_socket() as client:
        for number in range(5):
            client.sendto(frame(number), address(spec))
            assert client.recv(2048) == frame(number)
    switch.stop()
    assert len(rdpcap(str(capture))) == 3


def test_garbage_datagrams_do_not_stop_a_port(switch: p4emu.Switch) -> None:
    switch.set_default("In.l2", "In.forward", {"port": 1})
    spec = switch.add_port(1, "udp:127.0.0.1:0")
    switch.start()
    with udp_socket() as client:
        for garbage in (b"", b"x", bytes(13), bytes(65000)):
            client.sendto(garbage, address(spec))
        client.sendto(frame(B), address(spec))
        received = [client.recv(65536)]
        while received[-1] != frame(B):
            received.append(client.recv(65536))
    # v1model lets a packet whose parsing failed go on; this program forwards it, headers invalid.
    assert received == [b"", b"x", bytes(13), bytes(65000), frame(B)]


def test_what_cannot_leave_is_counted(switch: p4emu.Switch) -> None:
    switch.insert("In.l2", forward(A, 1))
    switch.insert("In.l2", forward(B, 9))
    one = switch.add_port(1, "udp:127.0.0.1:0")
    switch.add_port(2, "udp:127.0.0.1:0")
    switch.insert("In.l2", forward(ALL, 2))
    switch.start()
    with udp_socket() as client:
        client.sendto(frame(B), address(one))  # there is no port 9
        client.sendto(frame(ALL), address(one))  # nobody has been heard from at port 2
        client.sendto(frame(A), address(one))
        assert client.recv(2048) == frame(A)
    switch.stop()
    assert switch.statistics()["no_such_port"] == 1
    assert switch.ports()[2].statistics["tx_no_peer"] == 1


def test_an_impaired_port_treats_frames_as_its_seed_says(program: p4emu.Program) -> None:
    def survivors(seed: int) -> tuple[list[bytes], dict[str, int]]:
        with p4emu.Switch(program) as switch, udp_socket() as client:
            switch.set_default("In.l2", "In.forward", {"port": 1})
            spec = switch.add_port(1, "udp:127.0.0.1:0")
            switch.impair(1, "rx", loss=0.3, duplicate=0.2, seed=seed)
            switch.start()
            for number in range(100):
                client.sendto(frame(number), address(spec))
            last = frame(ALL)
            while switch.ports()[1].statistics["rx_frames"] < 100:
                pass
            switch.impair(1, "rx")
            client.sendto(last, address(spec))
            received = [client.recv(2048)]
            while received[-1] != last:
                received.append(client.recv(2048))
            return received, dict(switch.ports()[1].statistics)

    received, statistics = survivors(7)
    assert len(received) == 101 - statistics["rx_lost"] + statistics["rx_duplicated"]
    assert statistics["rx_lost"] > 0
    assert statistics["rx_duplicated"] > 0
    assert statistics["tx_lost"] == 0
    assert survivors(7)[0] == received
    assert survivors(8)[0] != received


def test_frames_that_go_nowhere_are_counted_by_reason(switch: p4emu.Switch) -> None:
    switch.set_default("In.l2", "In.flood", {"group": 99})
    switch.process(1, frame(B))
    switch.process(1, bytes(65536))
    statistics = switch.statistics()
    assert statistics["unknown_group"] == 1
    assert statistics["oversized"] == 1
    assert (statistics["processed"], statistics["dropped"], statistics["sent"]) == (2, 2, 0)


def test_ports_survive_another_program_and_can_be_started_and_stopped(
    switch: p4emu.Switch, program: p4emu.Program
) -> None:
    spec = switch.add_port(1, "udp:127.0.0.1:0")
    with refused("ALREADY_EXISTS", "port 1 exists already"):
        switch.add_port(1, "udp:127.0.0.1:0")
    with refused("UNAVAILABLE", "cannot bind to udp:127.0.0.1"):
        switch.add_port(2, spec)
    with udp_socket() as client:
        for _ in range(3):
            switch.load(program)
            switch.set_default("In.l2", "In.forward", {"port": 1})
            switch.start()
            switch.start()
            client.sendto(frame(B), address(spec))
            assert client.recv(2048) == frame(B)
            switch.stop()
            switch.stop()


def test_a_capture_that_cannot_be_written_is_refused(switch: p4emu.Switch) -> None:
    with refused("INVALID_ARGUMENT", "cannot write /nowhere/x.pcap"):
        switch.add_port(1, "udp:127.0.0.1:0", pcap="/nowhere/x.pcap")
    assert switch.ports() == {}


def test_a_capture_can_be_read_while_it_grows(switch: p4emu.Switch, tmp_path: Path) -> None:
    switch.set_default("In.l2", "In.forward", {"port": 1})
    capture = tmp_path / "port1.pcap"
    spec = switch.add_port(1, "udp:127.0.0.1:0", pcap=str(capture))
    switch.start()
    with udp_socket() as client:
        for number in range(3):
            client.sendto(frame(number), address(spec))
            client.recv(2048)
            # What the switch sees is in the file once its batch is done; `ports` waits for that.
            assert switch.ports()[1].statistics["tx_frames"] == number + 1
            assert len(rdpcap(str(capture))) == 2 * (number + 1)


def test_switches_leave_no_descriptor_or_thread_behind(program: p4emu.Program) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before = None
    for _ in range(50):
        with p4emu.Switch(program) as switch:
            switch.add_port(1, "udp:127.0.0.1:0")
            switch.start()
        del switch
        if before is None:
            before = (descriptors(), threads())
    assert (descriptors(), threads()) == before
