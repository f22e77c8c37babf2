"""Which program the switch runs: forwarding pipeline configs (P4Runtime Specification, 7 and 10).

    VERIFY               compile, and compare with the P4Info; nothing changes
    VERIFY_AND_SAVE      as VERIFY, and keep it for COMMIT; until then writes are refused, because
                         they would go to a state that COMMIT discards
    VERIFY_AND_COMMIT    as VERIFY, and run it: tables, counters and registers begin anew
    COMMIT               run what was saved
    RECONCILE_AND_COMMIT like VERIFY_AND_COMMIT while no program runs; otherwise not implemented

Compiling takes place outside of the lock that reads and writes take. Main type: `Pipeline`.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError
from p4emu.frontend.diagnostics import CompileError
from p4emu.p4runtime.bundle import BundleError, unpack
from p4emu.p4runtime.schema import Schema
from p4emu.p4runtime.target import Target

if TYPE_CHECKING:
    from p4emu.program import Program
    from p4emu.switch import Switch

_Request = p4rt.SetForwardingPipelineConfigRequest
_VERIFYING = (
    _Request.VERIFY,
    _Request.VERIFY_AND_SAVE,
    _Request.VERIFY_AND_COMMIT,
    _Request.RECONCILE_AND_COMMIT,
)


@dataclass(frozen=True)
class _Verified:
    """A config with what came of it."""

    config: Any
    schema: Schema
    program: Program


class Pipeline:
    """The configs of one switch.

    Parameters
    ----------
    switch
        With or without a program.
    device_config
        The bundle of the program that it runs, for clients that ask.
    """

    def __init__(self, switch: Switch, device_config: bytes = b"") -> None:
        self._switch = switch
        self._lock = threading.RLock()
        self._setting = threading.Lock()
        self._saved: _Verified | None = None
        self._config: Any = None
        self._target: Target | None = None
        if switch.program is not None:
            self._config = p4rt.ForwardingPipelineConfig()
            self._config.p4info.CopyFrom(switch.program.p4info)
            self._config.p4_device_config = device_config
            self._target = Target(switch, Schema(self._config.p4info))

    def set(self, action: int, config: Any | None) -> None:
        """Handle a `SetForwardingPipelineConfigRequest`.

        Raises
        ------
        SwitchError
            INVALID_ARGUMENT: the program does not compile, or the P4Info is another program's.
        """
        with self._setting:
            if action == _Request.COMMIT:
                if config is not None:
                    raise SwitchError("INVALID_ARGUMENT", "COMMIT takes no config")
                if self._saved is None:
                    raise SwitchError(
                        "FAILED_PRECONDITION", "no config is saved; send it with VERIFY_AND_SAVE"
                    )
                self._commit(self._saved)
                return
            if action not in _VERIFYING:
                raise SwitchError("INVALID_ARGUMENT", f"{action} is no action for a config")
            if config is None:
                raise SwitchError("INVALID_ARGUMENT", "the request has no config")
            if action == _Request.RECONCILE_AND_COMMIT and self._switch.program is not None:
                raise SwitchError(
                    "UNIMPLEMENTED",
                    "RECONCILE_AND_COMMIT is not supported while a program runs; "
                    "VERIFY_AND_COMMIT replaces it and clears its state",
                )
            verified = _verify(config)
            if action == _Request.VERIFY_AND_SAVE:
                with self._lock:
                    self._saved = verified
            elif action != _Request.VERIFY:
                self._commit(verified)

    def get(self) -> Any:
        """The `ForwardingPipelineConfig` of the running program; FAILED_PRECONDITION."""
        with self._lock:
            self._running()
            return self._config

    @contextmanager
    def reading(self) -> Iterator[Target]:
        """What reads act on, kept from changing meanwhile. Raises FAILED_PRECONDITION."""
        with self._lock:
            yield self._running()

    @contextmanager
    def writing(self) -> Iterator[Target]:
        """What writes act on, kept from changing meanwhile. Raises FAILED_PRECONDITION."""
        with self._lock:
            if self._saved is not None:
                raise SwitchError(
                    "FAILED_PRECONDITION", "a saved config waits for COMMIT; commit it first"
                )
            yield self._running()

    def _running(self) -> Target:
        if self._target is None:
            raise SwitchError(
                "FAILED_PRECONDITION",
                "the switch has no program; send one with SetForwardingPipelineConfig",
            )
        return self._target

    def _commit(self, verified: _Verified) -> None:
        with self._lock:
            self._switch.load(verified.program)
            self._config = verified.config
            self._target = Target(self._switch, verified.schema)
            self._saved = None


def _verify(config: Any) -> _Verified:
    if not config.HasField("p4info"):
        raise SwitchError("INVALID_ARGUMENT", "the config has no P4Info")
    schema = Schema(config.p4info)
    program, its_schema = _compile(config.p4_device_config)
    schema.check_describes(its_schema)
    kept = p4rt.ForwardingPipelineConfig()
    kept.CopyFrom(config)
    return _Verified(kept, schema, program)


def _compile(device_config: bytes) -> tuple[Program, Schema]:
    from p4emu.program import compile

    with tempfile.TemporaryDirectory(prefix="p4emu-") as folder:
        try:
            sources = unpack(device_config, Path(folder))
            program = compile(
                sources.main,
                defines=sources.defines,
                include=sources.include,
                root=Path(folder),  # clients do not read this machine's files
            )
            return program, Schema(program.p4info)
        except BundleError as error:
            raise SwitchError("INVALID_ARGUMENT", str(error)) from None
        except CompileError as error:
            # The client knows the files by their names in the bundle.
            text = str(error).replace(f"{folder}/", "").replace(folder, "the bundle")
            raise SwitchError("INVALID_ARGUMENT", f"the program has errors:\n{text}") from None
