"""The function under construction: its builder, its arguments, and access to variables.

`Frame` is what all emitters share. It maps IR variables to memory (packet variables to the variable
block, local ones to allocas that LLVM promotes to registers) and remembers, within one basic block,
which value each variable holds, so that the copies that inlining left cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import Register, Table, Type, Var
from p4emu.jit import abi
from p4emu.jit.errors import CodegenError
from p4emu.jit.layout import Layout, width_of

I1 = ll.IntType(1)
I8 = ll.IntType(8)
I16 = ll.IntType(16)
I32 = ll.IntType(32)
I64 = ll.IntType(64)
PTR = ll.PointerType()
VOID = ll.VoidType()

# What compiled code may call, with its type.
RUNTIME_FUNCTIONS: dict[str, Any] = {
    abi.TABLE_LOOKUP: ll.FunctionType(PTR, [PTR, PTR]),
    abi.CRC16: ll.FunctionType(I16, [PTR, I64]),
    abi.CRC32: ll.FunctionType(I32, [PTR, I64]),
}


def int_type(width: int) -> Any:
    """The LLVM type `i<width>`."""
    return ll.IntType(width)


def llvm_type(type_: Type) -> Any:
    """The LLVM type of a value of an IR type."""
    return ll.IntType(width_of(type_))


class Frame:
    """One function of the compiled program while its body is emitted.

    Attributes
    ----------
    builder
        At the place where code goes next; move it with `start` only.
    vars, state, packet, data, length
        Arguments: variable block, `State*`, `Packet*`, the frame's bytes, their number (i64).
    groups
        Base pointers of the register groups.
    labels
        Where `Leave(label)` goes.
    """

    def __init__(
        self, module: Any, name: str, layout: Layout, extra: Iterable[tuple[str, Any]], result: Any
    ) -> None:
        self.module = module
        self.layout = layout
        pointers = ["vars", "state", "packet", "data"]
        groups = [f"registers{number}" for number in range(len(layout.image.registers))]
        parameters = [(pointer, PTR) for pointer in pointers + groups]
        parameters += [("length", I64), *extra]
        type_ = ll.FunctionType(result, [type_ for _, type_ in parameters])
        self.function = ll.Function(module, type_, name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.function.attributes.add("nounwind")
        self.arguments: dict[str, Any] = {}
        for argument, (label, _) in zip(self.function.args, parameters, strict=True):
            argument.name = label
            if argument.type == PTR:
                # The run time promises that none overlap; vectorisation rests on it.
                argument.add_attribute("noalias")
            self.arguments[label] = argument
        self.vars = self.arguments["vars"]
        self.state = self.arguments["state"]
        self.packet = self.arguments["packet"]
        self.data = self.arguments["data"]
        self.length = self.arguments["length"]
        self.groups = [self.arguments[group] for group in groups]
        self.labels: dict[str, Any] = {}
        self._entry = self.function.append_basic_block("entry")
        self._first = self.function.append_basic_block("body")
        self._entry_builder = ll.IRBuilder(self._entry)
        self.builder = ll.IRBuilder(self._first)
        self._addresses: dict[Var, Any] = {}
        self._offsets: dict[tuple[int, int], Any] = {}
        self._known: dict[Var, Any] = {}
        self._rows: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def finish(self) -> None:
        """Close the entry block; the function is complete."""
        self._entry_builder.branch(self._first)

    # --- control flow ---

    def block(self, name: str) -> Any:
        """A new basic block, not yet started."""
        return self.function.append_basic_block(name)

    def start(self, block: Any) -> None:
        """Go on emitting in `block`."""
        self.builder.position_at_end(block)
        self._known.clear()
        self._rows.clear()

    def follow(self, block: Any) -> None:
        """Go on in `block`, whose only predecessor is the current block: values stay known."""
        self.builder.position_at_end(block)

    @property
    def terminated(self) -> bool:
        """Whether the current block has ended, so that what would follow is unreachable."""
        return bool(self.builder.block.is_terminated)

    def go(self, block: Any) -> None:
        """Branch to `block` unless the current block has ended already."""
        if not self.terminated:
            self.builder.branch(block)

    # --- memory ---

    def buffer(self, size: int, name: str) -> Any:
        """Uninitialised bytes that live as long as this call of the function."""
        memory = self._entry_builder.alloca(ll.ArrayType(I8, max(size, 1)), name=name)
        memory.type = PTR  # llvmlite types an alloca's pointer, and then checks every access
        return memory

    def zeroed(self, type_: Any, name: str) -> Any:
        """An integer in memory that starts as 0."""
        slot = self._entry_builder.alloca(type_, name=name)
        self._entry_builder.store(ll.Constant(type_, 0), slot)
        return slot

    def at(self, base: Any, offset: int) -> Any:
        """`base + offset` bytes, where `base` is an argument of the function."""
        if offset == 0:
            return base
        key = (id(base), offset)
        if key not in self._offsets:
            self._offsets[key] = self._entry_builder.gep(
                base, [ll.Constant(I64, offset)], inbounds=True, source_etype=I8
            )
        return self._offsets[key]

    def offset(self, pointer: Any, offset: Any) -> Any:
        """`pointer + offset` bytes; `offset` is an int or an i64."""
        if isinstance(offset, int):
            if offset == 0:
                return pointer
            offset = ll.Constant(I64, offset)
        return self.builder.gep(pointer, [offset], inbounds=True, source_etype=I8)

    def load(self, pointer: Any, type_: Any, align: int) -> Any:
        """Load a `type_` that is known to be aligned to `align` bytes."""
        return self.builder.load(pointer, typ=type_, align=align)

    def argument_array(self, field: int, index: int) -> Any:
        """Element `index` of the pointer array at byte `field` of `State`."""
        array = self.load(self.at(self.state, field), PTR, 8)
        return self.load(self.offset(array, index * 8), PTR, 8)

    # --- variables ---

    def packet_offset(self, var: Var) -> int:
        """Byte offset of a packet variable."""
        try:
            return self.layout.slots[var].offset
        except KeyError:
            raise CodegenError(f"packet variable {var.name} is not the program's") from None

    def read(self, var: Var) -> Any:
        """The value of a variable, as iW."""
        known = self._known.get(var)
        if known is not None:
            return known
        type_ = llvm_type(var.type)
        if var.storage == "packet":
            storage = self.layout.slots[var].storage
            value = self.load(self._address(var), int_type(storage * 8), min(storage, 8))
            if storage * 8 != type_.width:
                value = self.builder.trunc(value, type_)
        else:
            value = self.builder.load(self._address(var), typ=type_)
        self._known[var] = value
        return value

    def write(self, var: Var, value: Any) -> None:
        """Set a variable to an iW."""
        if self._known.get(var) is value:
            return
        self._known[var] = value
        if var.storage == "packet":
            storage = self.layout.slots[var].storage
            memory = int_type(storage * 8)
            if storage * 8 != value.type.width:
                value = self.builder.zext(value, memory)
            self.builder.store(value, self._address(var), align=min(storage, 8))
        else:
            self.builder.store(value, self._address(var))

    def forget(self, variables: Iterable[Var]) -> None:
        """These were written in memory behind this class's back."""
        for var in variables:
            self._known.pop(var, None)

    def _address(self, var: Var) -> Any:
        address = self._addresses.get(var)
        if address is None:
            if var.storage == "packet":
                address = self.at(self.vars, self.packet_offset(var))
            else:
                address = self.zeroed(llvm_type(var.type), var.name)
            self._addresses[var] = address
        return address

    # --- registers ---

    def register_cell(self, register: Register, index: Any) -> tuple[Any, Any, Any]:
        """Pointer to an element, whether the index is in range (i1), and the storage type.

        Out of range the pointer is into the scratch row: any write is harmless there, and what is
        read must be replaced by 0.
        """
        place = self.layout.registers[register]
        group = self.layout.image.registers[place.group]
        key = (place.group, id(index))
        row = self._rows.get(key)
        if row is None:
            row = self._row(place.group, group.length, group.row_bytes, index)
            self._rows[key] = row
        base, in_range, _ = row
        member = place.member
        return self.offset(base, member.offset), in_range, int_type(member.storage * 8)

    def _row(self, group: int, length: int, row_bytes: int, index: Any) -> tuple[Any, Any, Any]:
        builder = self.builder
        wide = index
        if index.type.width < 64:
            wide = builder.zext(index, I64)
        end = ll.Constant(wide.type, length)
        in_range = builder.icmp_unsigned("<", wide, end)
        clamped = builder.select(in_range, wide, end)
        if clamped.type.width > 64:
            clamped = builder.trunc(clamped, I64)
        offset = builder.mul(clamped, ll.Constant(I64, row_bytes), flags=("nuw", "nsw"))
        # `index` is kept: its id is the key, and must not be reused while this entry lives.
        return self.offset(self.groups[group], offset), in_range, index

    # --- tables ---

    def table_argument(self, table: Table) -> Any:
        """The pointer that the run time knows the table by."""
        return self.argument_array(abi.STATE_TABLES, self.layout.tables[table])

    def runtime(self, name: str) -> Any:
        """A run time function, declared on first use."""
        known = self.module.globals.get(name)
        if known is None:
            known = ll.Function(self.module, RUNTIME_FUNCTIONS[name], name)
            known.attributes.add("nounwind")
        return known

    def intrinsic(self, name: str, type_: Any, arity: int) -> Any:
        """`llvm.<name>.<type>`, a function of `arity` values of `type_` to one."""
        suffix = (
            f"v{type_.count}i{type_.element.width}"
            if isinstance(type_, ll.VectorType)
            else f"i{type_.width}"
        )
        full = f"llvm.{name}.{suffix}"
        known = self.module.globals.get(full)
        if known is None:
            known = ll.Function(self.module, ll.FunctionType(type_, [type_] * arity), full)
        return known
