"""`csrc/switch/abi.hpp` in numbers: what compiled code assumes about the run time's structures.

`tests/p4emu/jit/test_jit_abi.py` has a C++ compiler compare the two.
"""

from __future__ import annotations

VERSION = 1

# Byte offsets in `Packet`.
PACKET_DATA = 0
PACKET_LENGTH = 8
PACKET_PAYLOAD = 12

# Byte offsets in `State`.
STATE_TABLES = 0
STATE_REGISTERS = 8
STATE_COUNTERS = 16

# Byte offsets in `ActionEntry`.
ENTRY_ACTION = 0
ENTRY_HIT = 4
ENTRY_COUNTER = 8
ENTRY_DATA = 16

# A counter cell is {packets, bytes}.
COUNTER_PACKETS = 0
COUNTER_BYTES = 8
COUNTER_CELL_BYTES = 16

# Functions of the run time that compiled code calls.
TABLE_LOOKUP = "p4emu_table_lookup"
CRC16 = "p4emu_crc16"
CRC32 = "p4emu_crc32"
