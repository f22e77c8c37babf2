"""A stand-in for a switch: enough for a job of one rank, whose contributions are its own results.

It knows no slots and adds nothing; what a switch does is tested with the real P4 program.
"""

from __future__ import annotations

import selectors
import socket
import threading
from types import TracebackType

from pycollective import _core

LANES = 16


def lone_job(**changes: object) -> _core.JobConfig:
    """The only rank of job 1; keyword arguments replace fields."""
    fields: dict[str, object] = {
        "job": 1,
        "rank": 0,
        "world_size": 1,
        "epoch": 1,
        "slots": 8,
        "lanes": LANES,
        "mac": "02:50:43:00:01:00",
        "switch_mac": "02:50:43:ff:ff:fe",
        "ipv4": "10.0.1.1",
        "switch_ipv4": "10.255.255.254",
    }
    return _core.JobConfig(**(fields | changes))  # type: ignore[arg-type]


def mirror(port: int, frame: bytes) -> list[tuple[int, bytes]]:
    """The switch as a function: a probe's reply, or the contribution as its own result."""
    try:
        parsed = _core.parse_frame(frame)
    except ValueError:
        return []
    header = parsed.header
    if header.opcode == _core.Opcode.PROBE:
        header.opcode = _core.Opcode.PROBE_REPLY
        header.flags = 0
        header.lane_count = LANES
    else:
        header.opcode = _core.Opcode.RESULT
    answer = _core.build_frame(
        header,
        source_mac=parsed.destination_mac,
        destination_mac=parsed.source_mac,
        source_ipv4=parsed.destination_ipv4,
        destination_ipv4=parsed.source_ipv4,
        lanes=parsed.lanes if header.flags & _core.Flag.DATA else b"",
    )
    return [(port, answer)]


class ModelSwitch:
    """`mirror` behind a UDP port on loopback; with `answers` cleared only probes are answered."""

    def __init__(self) -> None:
        self.answers = True
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        host, port = self._socket.getsockname()
        self.address = f"{host}:{port}"
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> ModelSwitch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.close()
        self._thread.join()
        self._stopped.close()
        self._socket.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            while all(key.fileobj is self._socket for key, _ in selector.select()):
                frame, sender = self._socket.recvfrom(2048)
                for _, answer in mirror(1, frame):
                    opcode = _core.parse_frame(answer).header.opcode
                    if self.answers or opcode == _core.Opcode.PROBE_REPLY:
                        self._socket.sendto(answer, sender)
