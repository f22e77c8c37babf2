// Sizes of the program, and the constants of the wire protocol (docs/protocol.md).
// Everything here that is in #ifndef can be set on the command line with -D.
#ifndef PYCOLLECTIVE_CONFIG_P4
#define PYCOLLECTIVE_CONFIG_P4

// Lanes in a full frame: 16, 32, 64, 128, 256, 512, 1024 or 2048 (include/repeat.p4).
#ifndef INA_LANES
#define INA_LANES 256
#endif

// Slots in the pool, shared by all jobs; each has two versions. At most 32768 (15 bits).
#ifndef INA_SLOTS
#define INA_SLOTS 512
#endif

// Job numbers that have counters of their own. Number 0 is never given to a job: its counters
// collect the packets that claim a job number outside this range.
#ifndef INA_JOBS
#define INA_JOBS 256
#endif

// Rows of every per-slot register: a row is one version of one slot.
#define INA_ROWS (INA_SLOTS * 2)

// Ranks of one job on one switch: the width of the membership bitmap.
#define INA_MAX_RANKS 32

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> IP_PROTOCOL_UDP = 17;
const bit<16> INA_UDP_PORT = 0x4e41;
const bit<8> INA_VERSION = 1;

// Lengths in bytes: IPv4 header, UDP header with INA header, and the same with lanes.
const bit<16> IPV4_HEADER_LENGTH = 20;
const bit<16> INA_SHORT_LENGTH = 8 + 28;
const bit<16> INA_FULL_LENGTH = 8 + 28 + INA_LANES * 4;

const bit<8> OPCODE_CONTRIBUTE = 1;
const bit<8> OPCODE_RESULT = 2;
const bit<8> OPCODE_STATUS = 3;
const bit<8> OPCODE_PROBE = 4;
const bit<8> OPCODE_PROBE_REPLY = 5;
const bit<8> OPCODE_NACK = 6;

const bit<8> REDUCE_COPY = 6;

const bit<8> FLAG_RETRANSMIT = 0x01;
const bit<8> FLAG_OVERFLOW = 0x02;
const bit<8> FLAG_SPECIAL = 0x04;
const bit<8> FLAG_DATA = 0x10;
const bit<8> FLAG_MISMATCH = 0x20;

const bit<32> NACK_EPOCH = 1;
const bit<32> NACK_SLOT = 2;

// Indices of the counter `malformed`.
const bit<32> MALFORMED_TRUNCATED = 0;
const bit<32> MALFORMED_CHECKSUM = 1;
const bit<32> MALFORMED_HEADER = 2;

#endif
