// The state of one slot version, a control for each register array. Every control reads and writes
// its array exactly once for a packet (one read-modify-write), as a stateful ALU does.
#ifndef PYCOLLECTIVE_SLOT_P4
#define PYCOLLECTIVE_SLOT_P4

#include "config.p4"

// Compares the packet's tag (epoch, sequence, chunk) with the slot's and keeps the newer one.
// Another epoch always counts as newer: the table of jobs, not the packet, says what it is.
// Sequence numbers are compared by serial number arithmetic (RFC 1982).
control SlotTag(in bit<32> row, in bit<16> epoch, in bit<32> sequence, in bit<32> chunk,
                out bool newer, out bool same) {
    register<bit<16>>(INA_ROWS) epochs;
    register<bit<32>>(INA_ROWS) sequences;
    register<bit<32>>(INA_ROWS) chunks;

    apply {
        bit<16> stored_epoch;
        epochs.read(stored_epoch, row);
        epochs.write(row, epoch);
        bool reset = stored_epoch != epoch;

        bit<32> stored_sequence;
        sequences.read(stored_sequence, row);
        bit<32> ahead = sequence - stored_sequence;
        bool later = reset || (ahead != 0 && ahead[31:31] == 0);
        sequences.write(row, later ? sequence : stored_sequence);
        bool current = !later && ahead == 0;

        bit<32> stored_chunk;
        chunks.read(stored_chunk, row);
        newer = later || (current && chunk > stored_chunk);
        same = current && chunk == stored_chunk;
        chunks.write(row, newer ? chunk : stored_chunk);
    }
}

// The ranks that have contributed. `before` is without the packet's rank, `after` with it.
control SlotMembers(in bit<32> row, in bool newer, in bool same, in bit<32> mine,
                    out bit<32> before, out bit<32> after) {
    register<bit<32>>(INA_ROWS) bitmaps;

    apply {
        bit<32> stored;
        bitmaps.read(stored, row);
        before = newer ? 32w0 : stored;
        after = (newer || same) ? (before | mine) : before;
        bitmaps.write(row, after);
    }
}

// The largest exponent of the ranks that have contributed.
control SlotExponent(in bit<32> row, in bool newer, inout int<8> exponent) {
    register<int<8>>(INA_ROWS) exponents;

    apply {
        int<8> stored;
        exponents.read(stored, row);
        exponent = (newer || exponent > stored) ? exponent : stored;
        exponents.write(row, exponent);
    }
}

// The first contribution's fingerprint; `differs` tells that this packet has another.
control SlotFingerprint(in bit<32> row, in bool newer, in bit<32> fingerprint, out bool differs) {
    register<bit<32>>(INA_ROWS) fingerprints;

    apply {
        bit<32> stored;
        fingerprints.read(stored, row);
        differs = !newer && stored != fingerprint;
        fingerprints.write(row, newer ? fingerprint : stored);
    }
}

// Flags that stay set for the life of a chunk once any packet has raised them.
control SlotFlags(in bit<32> row, in bool newer, inout bit<8> flags) {
    register<bit<8>>(INA_ROWS) sticky;

    apply {
        bit<8> stored;
        sticky.read(stored, row);
        flags = flags | (newer ? 8w0 : stored);
        sticky.write(row, flags);
    }
}

// One lane's accumulators: row := (row & keep) + (value & add). The masks are all ones or zero:
//   keep 0, add 1   store        first contribution, and COPY with data
//   keep 1, add 1   accumulate   further contributions
//   keep 1, add 0   read         repeats, and COPY without data
// The sign bit of `overflow` is set, and never cleared, when the signed sum leaves 32 bits.
control Lane(in bit<32> row, in bit<32> keep, in bit<32> add, inout bit<32> value,
             inout bool overflow) {
    register<bit<32>>(INA_ROWS) accumulators;

    apply {
        bit<32> stored;
        accumulators.read(stored, row);
        bit<32> left = stored & keep;
        bit<32> right = value & add;
        value = left + right;
        bit<32> wrapped = (left ^ value) & (right ^ value);
        if (wrapped[31:31] == 1) {
            overflow = true;
        }
        accumulators.write(row, value);
    }
}

#endif
