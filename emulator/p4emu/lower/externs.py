"""Lowers the externs of core.p4 and v1model.p4: construction, methods, functions.

packet_in and `verify` are in `parsers`. What is ignored on purpose: `log_msg` and `assume`, which
change no packet, and `direct_counter.count()`, because v1model counts every hit of the counter's
table whether the action says so or not. Everything else that is not here is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, cast

from p4emu.frontend import ast
from p4emu.frontend.program import Arguments, EnumValue, ExternFunctionCall, ExternMethodCall
from p4emu.frontend.source import Source
from p4emu.frontend.types import ExternType
from p4emu.ir.nodes import (
    BOOL,
    Assign,
    Bits,
    ChecksumAlgorithm,
    Const,
    Count,
    Counter,
    Emit,
    Expr,
    Hash,
    Read,
    Register,
    RegisterRead,
    RegisterWrite,
    Var,
)
from p4emu.lower import fold, shapes
from p4emu.lower.errors import error, unsupported
from p4emu.lower.scope import (
    CounterObject,
    DirectCounterObject,
    ExternObject,
    PacketObject,
    RegisterObject,
)
from p4emu.lower.values import (
    ChosenPlace,
    HeaderPlace,
    Place,
    Record,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
    flatten,
    load,
)

if TYPE_CHECKING:
    from p4emu.lower.expressions import Expressions
    from p4emu.lower.statements import Statements

DROP_PORT = 511
"""The egress_spec that v1model's mark_to_drop sets; the run time sends such packets nowhere."""

CounterKind = Literal["packets", "bytes", "packets_and_bytes"]

_HASH_BITS: dict[str, int] = {"csum16": 16, "crc16": 16, "xor16": 16, "crc32": 32, "identity": 64}


class _Arguments:
    """The arguments of a call by parameter name."""

    def __init__(self, arguments: Arguments, source: Source) -> None:
        self._values = {argument.parameter.name: argument.value for argument in arguments}
        self._source = source

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> ast.Expression:
        value = self._values.get(name)
        if value is None:
            raise error(self._source, f"the argument for `{name}` is missing")
        return value


# --- objects ---------------------------------------------------------------------------------


def construct(
    lowering: Expressions, type_: ExternType, arguments: Arguments, name: str, source: Source
) -> ExternObject:
    """Makes an extern object with its control-plane name, in the current scope."""
    given = _Arguments(arguments, source)
    program = lowering.program
    lowering.allocator.claim(name, source)
    if type_.name == "register":
        element = lowering.substituted(type_.arguments[0])
        scalar = shapes.require_scalar(element, source, "a register")
        if not isinstance(scalar, Bits):
            scalar = Bits(1)
        register = Register(name, scalar, _size(lowering, given["size"], "a register"))
        program.registers.append(register)
        return RegisterObject(register, element)
    if type_.name == "counter":
        kind = _member(lowering, given["type"])
        counter = Counter(name, _counter_kind(kind), _size(lowering, given["size"], "a counter"))
        program.counters.append(counter)
        return CounterObject(counter)
    if type_.name == "direct_counter":
        return DirectCounterObject(name, _counter_kind(_member(lowering, given["type"])))
    raise unsupported(source, f"extern `{type_.name}`")


def direct_counter(lowering: Expressions, found: DirectCounterObject, table: str) -> Counter:
    """The counter of a table, from the object that its `counters` property names."""
    counter = Counter(found.name, _counter_kind(found.kind), 0, table)
    lowering.program.counters.append(counter)
    return counter


def _size(lowering: Expressions, expression: ast.Expression, what: str) -> int:
    size = lowering.compile_time(expression, f"the size of {what}").value
    if size < 1:
        raise error(expression.source, f"the size of {what} must be at least 1, not {size}")
    return size


def _member(lowering: Expressions, expression: ast.Expression) -> str:
    """The name of the enum member that an expression is."""
    constant = lowering.checked.constant(expression)
    if isinstance(constant, EnumValue):
        return constant.name
    raise unsupported(expression.source, "anything but the name of an enum member here")


def _counter_kind(name: str) -> CounterKind:
    return cast(CounterKind, name)  # the members of v1model's CounterType have the same names


# --- methods ---------------------------------------------------------------------------------


def call_method(lowering: Statements, call: ExternMethodCall, source: Source) -> Value | None:
    """A method of an extern object."""
    receiver = lowering.resolve(call.receiver)
    given = _Arguments(call.arguments, source)
    method = call.method.name
    if isinstance(receiver, RegisterObject):
        if method == "read":
            _register_read(lowering, receiver, given, source)
            return None
        index, value = lowering.expr_pair(given["index"], given["value"])
        value = fold.cast(value, receiver.register.type)
        lowering.emit(RegisterWrite(receiver.register, _index(index), value))
        return None
    if isinstance(receiver, CounterObject):
        lowering.emit(Count(receiver.counter, _index(lowering.expr(given["index"]))))
        return None
    if isinstance(receiver, DirectCounterObject):
        return None  # the table counts its hits itself
    if isinstance(receiver, PacketObject):
        if call.type.name == "packet_out":
            _emit(lowering, lowering.operand(given["hdr"]), source)
            return None
        return lowering.packet_in(call, source)
    raise unsupported(source, f"`{call.type.name}.{method}`")


def _index(index: Expr) -> Expr:
    """An index as unsigned bits: a negative one is far outside of every array."""
    if isinstance(index.type, Bits) and index.type.signed:
        return fold.cast(fold.cast(index, Bits(64, True)), Bits(64))
    return index


def _register_read(
    lowering: Statements, receiver: RegisterObject, given: _Arguments, source: Source
) -> None:
    target = lowering.place(given["result"])
    index = _index(lowering.expr(given["index"]))
    register = receiver.register
    if isinstance(target, Var) and target.type == register.type:
        lowering.emit(RegisterRead(register, target, index))
        return
    element = lowering.local("element", register.type)
    lowering.emit(RegisterRead(register, element, index))
    lowering.store(target, shapes.convert(Read(element), receiver.element, source))


def _emit(lowering: Statements, what: Value | Place, source: Source) -> None:
    """packet.emit(): every header in a place, in order."""
    if isinstance(what, HeaderPlace):
        lowering.emit(Emit(what.header))
    elif isinstance(what, (StructPlace, UnionPlace)):
        for inner in what.fields.values():
            _emit(lowering, inner, source)
    elif isinstance(what, StackPlace):
        for element in what.elements:
            _emit(lowering, element, source)
    elif isinstance(what, ChosenPlace):
        lowering.choose(what, lambda option: _emit(lowering, option, source))
    else:
        raise unsupported(source, "emitting anything but headers")


# --- functions -------------------------------------------------------------------------------


def call_function(lowering: Statements, call: ExternFunctionCall, source: Source) -> Value | None:
    """An extern function."""
    name = call.function.name
    handler = _FUNCTIONS.get(name)
    if handler is None:
        raise unsupported(source, f"extern function `{name}`")
    handler(lowering, _Arguments(call.arguments, source), source)
    return None


def _mark_to_drop(lowering: Statements, given: _Arguments, source: Source) -> None:
    """The deprecated form without an argument means the standard metadata of the pipeline."""
    fields: Mapping[str, Place] = lowering.program.standard
    if "standard_metadata" in given:
        standard = lowering.place(given["standard_metadata"])
        assert isinstance(standard, StructPlace)
        fields = standard.fields
    for field, value in (("egress_spec", DROP_PORT), ("mcast_grp", 0)):
        target = fields[field]
        assert isinstance(target, Var)
        lowering.store(target, fold.constant(value, target.type))


def _checksum(
    lowering: Statements, algorithm: ast.Expression, data: ast.Expression, name: str
) -> Expr:
    """Emits the algorithm over the data; gives the result."""
    member = _member(lowering, algorithm)
    width = _HASH_BITS.get(member)
    if width is None:
        raise unsupported(algorithm.source, f"HashAlgorithm.{member}")
    parts = tuple(
        fold.cast(part, Bits(1)) if part.type == BOOL else part
        for part in flatten(lowering.value(data))
    )
    result = lowering.local(name, Bits(width))
    lowering.emit(Hash(result, cast(ChecksumAlgorithm, member), parts))
    return Read(result)


def _verify_checksum(lowering: Statements, given: _Arguments, source: Source) -> None:
    condition = lowering.expr(given["condition"])
    with lowering.nested() as body:
        expected = _checksum(lowering, given["algo"], given["data"], "checksum")
        found = lowering.expr(given["checksum"])
        failed = lowering.program.standard["checksum_error"]
        differs = fold.binary("!=", fold.cast(expected, found.type), found)
        lowering.emit_if(differs, [Assign(failed, fold.constant(1, failed.type))], ())
    lowering.emit_if(condition, body, ())


def _update_checksum(lowering: Statements, given: _Arguments, source: Source) -> None:
    condition = lowering.expr(given["condition"])
    with lowering.nested() as body:
        result = _checksum(lowering, given["algo"], given["data"], "checksum")
        target = lowering.place(given["checksum"])
        before = load(target)
        assert not isinstance(before, Record)
        lowering.store(target, fold.cast(result, before.type))
    lowering.emit_if(condition, body, ())


def _hash(lowering: Statements, given: _Arguments, source: Source) -> None:
    """result = base + (hash % max); the base alone when max is 0."""
    target = lowering.place(given["result"])
    base = lowering.saved_expr(lowering.expr(given["base"]), "base")
    digest = _checksum(lowering, given["algo"], given["data"], "hash")
    limit = lowering.saved_expr(lowering.expr(given["max"]), "max")
    before = load(target)
    assert not isinstance(before, Record)
    parts = (base, digest, limit, before)
    wide = Bits(max(part.type.width for part in parts if isinstance(part.type, Bits)))
    base, digest, limit = (fold.cast(part, wide) for part in (base, digest, limit))
    zero = fold.constant(0, wide)
    if isinstance(limit, Const) and limit.value & (limit.value - 1) == 0:
        mask = fold.constant(max(limit.value - 1, 0), wide)
        offset = fold.binary("&", digest, mask) if limit.value else zero
    elif isinstance(limit, Const):
        offset = fold.binary("%", digest, limit)
    else:
        # No division by zero may be reached, so zero is replaced before the division.
        is_zero = fold.binary("==", limit, zero)
        divisor = fold.mux(is_zero, fold.constant(1, wide), limit)
        offset = fold.binary("%", digest, divisor)
    total = fold.binary("+", base, offset)
    lowering.store(target, fold.cast(total, before.type))


def _ignored(lowering: Statements, given: _Arguments, source: Source) -> None:
    """Changes nothing that a packet or the control plane could see."""


def _verify(lowering: Statements, given: _Arguments, source: Source) -> None:
    lowering.verify(given["check"], given["toSignal"], source)


_FUNCTIONS: dict[str, Callable[[Statements, _Arguments, Source], None]] = {
    "mark_to_drop": _mark_to_drop,
    "verify_checksum": _verify_checksum,
    "update_checksum": _update_checksum,
    "hash": _hash,
    "verify": _verify,
    "log_msg": _ignored,
    "assume": _ignored,
}
