"""Refusals as gRPC statuses (P4Runtime Specification, sections 12.3 and 13.4).

A request that fails as a whole ends with one code and message. A `Write` of which some updates
failed ends with UNKNOWN and, in the details, a `p4.v1.Error` for each update in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import grpc
from google.rpc import code_pb2, status_pb2
from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError

_MAX_MESSAGE = 2000
"""Characters of a status's message. It travels in the metadata, of which clients take 8 KiB."""

_MAX_DETAILS = 5000
"""Bytes of a status's details, for the same reason."""

_SHORT_MESSAGE = 80
"""Characters of each update's message when all of them together are too long."""


def abort(context: grpc.ServicerContext, error: SwitchError) -> NoReturn:
    """End a call with an error's code and message."""
    context.abort(grpc.StatusCode[error.code], _cut(str(error), _MAX_MESSAGE))
    raise AssertionError("abort raises")


def abort_write(context: grpc.ServicerContext, outcomes: Sequence[SwitchError | None]) -> NoReturn:
    """End a `Write` with an error for each update; None stands for one that was applied."""
    failed = [(i, error) for i, error in enumerate(outcomes) if error is not None]
    details = _details(outcomes, _MAX_MESSAGE)
    if details.ByteSize() > _MAX_DETAILS:
        details = _details(outcomes, _SHORT_MESSAGE)
    while details.ByteSize() > _MAX_DETAILS:
        del details.details[len(details.details) * 3 // 4 :]
    kept = len(details.details)
    left_out = f" (details of the first {kept} only)" if kept < len(outcomes) else ""
    first, why = failed[0]
    details.message = _cut(
        f"{len(failed)} of {len(outcomes)} updates failed{left_out}; "
        f"update {first}: {why.code}: {why}",
        _MAX_MESSAGE // 2,
    )
    details.code = code_pb2.UNKNOWN
    context.set_trailing_metadata((("grpc-status-details-bin", details.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, details.message)
    raise AssertionError("abort raises")


def _details(outcomes: Sequence[SwitchError | None], limit: int) -> Any:
    status = status_pb2.Status()
    for outcome in outcomes:
        error = p4rt.Error(canonical_code=code_pb2.OK)
        if outcome is not None:
            error.canonical_code = code_pb2.Code.Value(outcome.code)
            error.message = _cut(str(outcome), limit)
            error.space = "p4emu"
        status.details.add().Pack(error)
    return status


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
