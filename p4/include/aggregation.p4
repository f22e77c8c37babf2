// What a CONTRIBUTE packet does: the table of docs/protocol.md, section 3, from top to bottom.
// The packet leaves as a RESULT to the whole job, as a RESULT or STATUS to its sender, or not at
// all; `outcome` says which, and the caller sends it.
#ifndef PYCOLLECTIVE_AGGREGATION_P4
#define PYCOLLECTIVE_AGGREGATION_P4

#include "headers.p4"
#include "slot.p4"

enum bit<8> Outcome {
    STALE = 0,     // older than the slot: drop
    WAITING = 1,   // counted, others are missing: drop
    COMPLETE = 2,  // counted, the last one: result to all
    RESEND = 3,    // repeat of a complete chunk: result to the sender
    STATUS = 4     // repeat of an incomplete chunk: bitmap to the sender
}

#define LANE_INSTANCE(n) Lane() lane##n;
#define LANE_APPLY(n) lane##n.apply(row, keep, add, hdr.lanes.l##n, overflow);

control Aggregation(inout headers_t hdr, in job_t job, out Outcome outcome) {
    SlotTag() tag;
    SlotMembers() members;
    SlotExponent() exponent;
    SlotFingerprint() fingerprint;
    SlotFlags() flags;
    LANES(LANE_INSTANCE)

    apply {
        bit<32> row = (bit<32>)((job.slot_base + hdr.ina.slot) ++ hdr.ina.slot_version);
        // Admission lets ranks below INA_MAX_RANKS pass and no others.
        bit<32> mine = 32w1 << (bit<8>)hdr.ina.rank;

        bool newer;
        bool same;
        tag.apply(row, job.epoch, hdr.ina.sequence, hdr.ina.chunk, newer, same);
        bit<32> before;
        bit<32> after;
        members.apply(row, newer, same, mine, before, after);

        bool repeat = same && (before & mine) != 0;
        if (!newer && !same) {
            outcome = Outcome.STALE;
        } else if (repeat && after != job.members) {
            outcome = Outcome.STATUS;
            hdr.ina.fingerprint = after;
        } else {
            outcome = Outcome.WAITING;
            if (repeat) {
                outcome = Outcome.RESEND;
            } else if (after == job.members) {
                outcome = Outcome.COMPLETE;
            }

            bool copy = hdr.ina.reduce_op == REDUCE_COPY;
            bool data = hdr.lanes.isValid();
            bool first = copy || newer;
            bit<32> keep = (data && first && !repeat) ? 32w0 : 32w0xffffffff;
            bit<32> add = (data && !repeat) ? 32w0xffffffff : 32w0;
            bool overflow = false;
            if (copy && !data) {
                // The accumulators hold the root's values, now or later; the result carries them.
                hdr.lanes.setValid();
            }
            if (hdr.lanes.isValid()) {
                LANES(LANE_APPLY)
            }

            bool differs;
            fingerprint.apply(row, newer, hdr.ina.fingerprint, differs);
            exponent.apply(row, newer, hdr.ina.exponent);
            bit<8> raised = hdr.ina.flags & FLAG_SPECIAL;
            if (overflow) {
                raised = raised | FLAG_OVERFLOW;
            }
            if (differs) {
                raised = raised | FLAG_MISMATCH;
            }
            flags.apply(row, newer, raised);
            hdr.ina.flags = raised;
        }
    }
}

#endif
