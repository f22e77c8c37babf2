"""The Python copy of the run time's structure layouts is that of `csrc/switch/abi.hpp`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from p4emu.jit import abi

CSRC = Path(__file__).resolve().parents[3] / "csrc"

ASSERTIONS = f"""
#include <cstddef>
#include "switch/abi.hpp"
using namespace p4emu;
static_assert(kAbiVersion == {abi.VERSION});
static_assert(offsetof(Packet, data) == {abi.PACKET_DATA});
static_assert(offsetof(Packet, length) == {abi.PACKET_LENGTH});
static_assert(offsetof(Packet, payload) == {abi.PACKET_PAYLOAD});
static_assert(offsetof(State, tables) == {abi.STATE_TABLES});
static_assert(offsetof(State, registers) == {abi.STATE_REGISTERS});
static_assert(offsetof(State, counters) == {abi.STATE_COUNTERS});
static_assert(offsetof(ActionEntry, action) == {abi.ENTRY_ACTION});
static_assert(offsetof(ActionEntry, hit) == {abi.ENTRY_HIT});
static_assert(offsetof(ActionEntry, counter) == {abi.ENTRY_COUNTER});
static_assert(offsetof(ActionEntry, data) == {abi.ENTRY_DATA});
static_assert(kActionDataOffset == {abi.ENTRY_DATA});
"""


def test_layouts_are_those_of_the_header(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "abi.cpp"
    source.write_text(ASSERTIONS)
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{CSRC}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
