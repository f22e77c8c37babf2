"""Connections over loopback UDP: buffers, handles, waiting, closing, errors."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from model_switch import LANES, ModelSwitch, lone_job

from pycollective import _core
from pycollective._core import Connection, CoreError, DataType, ErrorCode, State

PATIENCE = 10.0  # seconds that only a broken build waits


def test_a_sum_lands_in_the_output_buffer(connection: Connection) -> None:
    values = np.arange(-500, 500, dtype=np.int32)
    total = np.zeros_like(values)
    handle = connection.all_reduce(values, total, DataType.INT32)
    assert handle.wait(PATIENCE)
    assert handle.done()
    assert handle.error is None
    assert (total == values).all()


def test_input_and_output_may_be_the_same(connection: Connection) -> None:
    values = np.linspace(-1, 1, 100, dtype=np.float32)
    expected = values.copy()
    assert connection.all_reduce(values, values, DataType.FLOAT32).wait(PATIENCE)
    assert np.allclose(values, expected, rtol=0, atol=2.0**-29)


def test_addresses_do_as_well_as_buffers(connection: Connection) -> None:
    values = np.arange(50, dtype=np.int32)
    total = np.zeros_like(values)
    handle = connection.all_reduce_ptr(
        values.ctypes.data, total.ctypes.data, 50, DataType.INT32, keep_alive=(values, total)
    )
    assert handle.wait(PATIENCE)
    assert (total == values).all()


def test_any_bytes_can_be_broadcast(connection: Connection) -> None:
    data = bytearray(b"every byte, also an odd number of them")
    assert connection.broadcast(data, DataType.BYTE, 0).wait(PATIENCE)
    # The root's own buffer may be read-only.
    handle = connection.broadcast(b"read only", DataType.BYTE, 0)
    assert handle.wait(PATIENCE)
    assert handle.error is None


def test_handles_count_and_complete_in_order(model: ModelSwitch) -> None:
    with Connection.connect(lone_job(), model.address, completion_queue=True) as connection:
        handles = [connection.barrier() for _ in range(10)]
        assert [handle.id for handle in handles] == list(range(1, 11))
        completed = [connection.next_completed(PATIENCE) for _ in range(10)]
        assert [handle.id for handle in completed if handle] == list(range(1, 11))
        assert all(handle and handle.done() and not handle.error for handle in completed)
        assert connection.next_completed(0) is None


def test_a_completion_thread_ends_when_the_connection_closes(model: ModelSwitch) -> None:
    connection = Connection.connect(lone_job(), model.address, completion_queue=True)
    seen: list[int] = []

    def drain() -> None:
        while (handle := connection.next_completed()) is not None:
            seen.append(handle.id)

    thread = threading.Thread(target=drain)
    thread.start()
    last = connection.barrier()
    assert last.wait(PATIENCE)
    connection.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert seen == [1]


def test_the_completion_queue_must_be_asked_for(connection: Connection) -> None:
    with pytest.raises(RuntimeError, match="completion_queue"):
        connection.next_completed(0)


def test_memory_is_held_until_the_collective_is_done(model: ModelSwitch) -> None:
    class Owner:
        pass

    model.answers = False
    owner = Owner()
    alive = weakref.ref(owner)
    values = np.ones(4, dtype=np.int32)
    connection = Connection.connect(lone_job(), model.address)
    handle = connection.all_reduce_ptr(
        values.ctypes.data, values.ctypes.data, 4, DataType.INT32, keep_alive=owner
    )
    del owner
    gc.collect()
    assert alive() is not None
    data = bytearray(16)
    view = connection.broadcast(data, DataType.BYTE, 0)
    with pytest.raises(BufferError):
        data.clear()  # exported: it cannot move under the I/O thread
    model.answers = True
    assert view.wait(PATIENCE)
    data.clear()
    assert handle.done()
    assert alive() is None
    connection.close()


def test_memory_is_let_go_when_a_later_call_comes_by(connection: Connection) -> None:
    data = bytearray(16)
    forgotten = connection.broadcast(data, DataType.BYTE, 0)
    del forgotten
    assert connection.barrier().wait(PATIENCE)  # later than the broadcast, so that is done too
    connection.statistics()
    data.clear()


def test_waiting_ends_at_its_timeout(model: ModelSwitch) -> None:
    model.answers = False
    with Connection.connect(lone_job(), model.address) as connection:
        handle = connection.barrier()
        assert not handle.wait(0)
        assert not handle.wait(0.01)
        assert not handle.done()
        assert handle.error is None


def test_other_threads_run_while_one_waits(model: ModelSwitch) -> None:
    model.answers = False
    with Connection.connect(lone_job(), model.address) as connection:
        handle = connection.barrier()
        waiting = threading.Thread(target=handle.wait)
        waiting.start()
        # Were the GIL held by the waiter, the model switch (a Python thread) could never answer.
        model.answers = True
        waiting.join(PATIENCE)
        assert not waiting.is_alive()


def test_ctrl_c_interrupts_waiting(model: ModelSwitch) -> None:
    model.answers = False

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with Connection.connect(lone_job(), model.address) as connection:
            handle = connection.barrier()
            sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))

            def wait() -> None:
                sender.start()
                handle.wait(PATIENCE)

            with pytest.raises(KeyboardInterrupt):
                wait()
            sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_closing_cancels_what_is_outstanding(model: ModelSwitch) -> None:
    model.answers = False
    connection = Connection.connect(lone_job(), model.address)
    handle = connection.barrier()
    connection.close()
    connection.close()
    assert connection.closed
    assert handle.done()
    assert handle.error is not None
    assert handle.error.code == ErrorCode.CANCELLED
    late = connection.barrier()
    assert late.done()
    assert late.error is not None
    assert late.error.code == ErrorCode.CANCELLED


def test_a_dropped_connection_closes_itself(model: ModelSwitch) -> None:
    model.answers = False
    connection = Connection.connect(lone_job(), model.address)
    handle = connection.barrier()
    del connection
    gc.collect()
    assert handle.wait(PATIENCE)
    assert handle.error is not None
    assert handle.error.code == ErrorCode.CANCELLED


def test_an_interpreter_ends_with_a_connection_open(model: ModelSwitch) -> None:
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
import numpy as np
from model_switch import lone_job
from pycollective import _core
connection = _core.Connection.connect(lone_job(), {model.address!r})
values = np.ones(10**6, dtype=np.int32)
handle = connection.all_reduce(values, values, _core.DataType.INT32)
print("leaving")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "leaving\n", "")


@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_child_is_told(model: ModelSwitch) -> None:
    with Connection.connect(lone_job(), model.address) as connection:
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            error = connection.barrier().error
            told = error is not None and "fork" in error.text and connection.closed
            os._exit(0 if told else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        handle = connection.barrier()
        assert handle.wait(PATIENCE)
        assert handle.error is None


def test_nobody_there_is_said_with_the_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(CoreError, match=f"nothing listens on {address}") as raised:
        Connection.connect(lone_job(), address, connect_timeout=0.1)
    assert raised.value.error.code == ErrorCode.SWITCH_UNREACHABLE
    assert raised.value.error.waited >= 0.1


def test_a_path_too_small_for_a_frame_is_said_before_anything_is_sent(model: ModelSwitch) -> None:
    needed = 14 + 20 + 8 + 28 + 4 * LANES + 28
    with pytest.raises(CoreError, match="INA_LANES") as raised:
        Connection.connect(lone_job(), model.address, mtu=needed - 1)
    assert raised.value.error.code == ErrorCode.MTU
    assert (raised.value.error.expected, raised.value.error.found) == (needed, needed - 1)
    Connection.connect(lone_job(), model.address, mtu=needed).close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"world_size": 33}, "33"), ({"rank": 1}, "rank"), ({"epoch": 0}, "epoch")],
)
def test_a_bad_configuration_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CoreError, match=message) as raised:
        Connection.connect(lone_job(**changes), "127.0.0.1:1")
    assert raised.value.error.code == ErrorCode.UNSUPPORTED


def test_a_bad_address_is_refused() -> None:
    with pytest.raises(CoreError, match="no port") as raised:
        Connection.connect(lone_job(), "127.0.0.1")
    assert raised.value.error.code == ErrorCode.TRANSPORT


def test_buffers_that_do_not_fit_are_refused(connection: Connection) -> None:
    good = np.zeros(8, dtype=np.int32)
    read_only = np.zeros(8, dtype=np.int32)
    read_only.flags.writeable = False
    unaligned = np.zeros(33, dtype=np.uint8)[1:].view(np.int32)
    cases = [
        (good, np.zeros(9, dtype=np.int32), "32 bytes and the output 36"),
        (good, np.zeros(8, dtype=np.float32), "format 'f'"),
        (good.astype(np.uint32), good, "format 'I'"),
        (good[::2], good[:4], "C-contiguous"),
        (good, read_only, "writable"),
        (good[:4], good[2:6], "overlap"),
        (unaligned, good, "aligned"),
        (object(), good, "buffer"),
    ]
    for given, output, message in cases:
        with pytest.raises(CoreError, match=message) as raised:
            connection.all_reduce(given, output, DataType.INT32)  # type: ignore[arg-type]
        assert raised.value.error.code == ErrorCode.UNSUPPORTED
        assert raised.value.error.operation == "all_reduce"
    assert connection.barrier().wait(PATIENCE)  # nothing is left in the way


def test_what_the_engine_refuses_comes_with_the_handle(connection: Connection) -> None:
    data = bytearray(16)
    handle = connection.all_reduce(data, data, DataType.BYTE)
    assert handle.wait(PATIENCE)
    assert handle.error is not None
    assert handle.error.code == ErrorCode.UNSUPPORTED


def test_statistics_count_what_has_passed(connection: Connection) -> None:
    values = np.zeros(10 * LANES, dtype=np.int32)
    assert connection.all_reduce(values, values, DataType.INT32).wait(PATIENCE)
    statistics = connection.statistics()
    assert statistics.state in (State.IDLE, State.RUNNING)
    assert statistics.engine.results >= 9  # published at most one turn late
    assert statistics.transport.frames_sent >= 10
    assert statistics.engine.malformed["udp_checksum"] == 0


def test_a_connection_knows_its_ends(model: ModelSwitch) -> None:
    with Connection.connect(lone_job(), model.address, "127.0.0.1") as connection:
        assert connection.remote_address == model.address
        assert connection.local_address.startswith("127.0.0.1:")
        assert connection.receive_buffer_wanted > 0
        assert connection.config.mac == "02:50:43:00:01:00"
        assert connection.failure is None


def test_durations_must_be_numbers_of_seconds() -> None:
    with pytest.raises(ValueError, match="number of seconds"):
        _core.Timers(deadline=-1)
    with pytest.raises(ValueError, match="number of seconds"):
        _core.Timers(rto_min=float("nan"))
    assert _core.Timers(deadline=1.5).deadline == 1.5
