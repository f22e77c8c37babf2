"""The service's methods as gRPC handlers that get every message, also one that is malformed.

gRPC's generated registration parses messages before a handler is called. A message that cannot be
parsed is then answered with INTERNAL, and on a stream the call never ends in the server, which
cannot stop any more. Here it is answered with INVALID_ARGUMENT, like other wrong content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError
from p4emu.p4runtime.status import abort

SERVICE = "p4.v1.P4Runtime"

_METHODS: tuple[tuple[str, Callable[..., Any], Any], ...] = (
    ("Write", grpc.unary_unary_rpc_method_handler, p4rt.WriteRequest),
    ("Read", grpc.unary_stream_rpc_method_handler, p4rt.ReadRequest),
    (
        "SetForwardingPipelineConfig",
        grpc.unary_unary_rpc_method_handler,
        p4rt.SetForwardingPipelineConfigRequest,
    ),
    (
        "GetForwardingPipelineConfig",
        grpc.unary_unary_rpc_method_handler,
        p4rt.GetForwardingPipelineConfigRequest,
    ),
    ("StreamChannel", grpc.stream_stream_rpc_method_handler, p4rt.StreamMessageRequest),
    ("Capabilities", grpc.unary_unary_rpc_method_handler, p4rt.CapabilitiesRequest),
)


@dataclass(frozen=True, slots=True)
class _Malformed:
    """What a handler gets in place of a message."""

    reason: str


def handlers(service: object) -> grpc.GenericRpcHandler:
    """The handlers for an object that has a method for each of the service's.

    A method gets a message, or for StreamChannel an iterator of messages that raises SwitchError
    at a malformed one.
    """
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            name: make(
                _stream(getattr(service, name))
                if name == "StreamChannel"
                else _unary(getattr(service, name), streams=name == "Read"),
                request_deserializer=_parser(request),
                response_serializer=lambda answer: answer.SerializeToString(),
            )
            for name, make, request in _METHODS
        },
    )


def _parser(message: Any) -> Callable[[bytes], Any]:
    def parse(data: bytes) -> Any:
        try:
            return message.FromString(data)
        # DecodeError is what it promises; text that is no UTF-8 and messages in messages without
        # end raise others.
        except Exception as error:
            return _Malformed(str(error))  # for the handler; raising would leave the answer to gRPC

    return parse


def _refusal(request: Any) -> SwitchError | None:
    if isinstance(request, _Malformed):
        return SwitchError("INVALID_ARGUMENT", f"the request is malformed: {request.reason}")
    return None


def _unary(method: Callable[..., Any], *, streams: bool) -> Callable[..., Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Any:
        refusal = _refusal(request)
        if refusal is not None:
            abort(context, refusal)
        return method(request, context)

    def call_streaming(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        yield from call(request, context)

    return call_streaming if streams else call


def _stream(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def checked(requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            refusal = _refusal(request)
            if refusal is not None:
                raise refusal
            yield request

    def call(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        yield from method(checked(requests), context)

    return call
