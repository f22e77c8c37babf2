// In-network collectives for programmable switches: all-reduce, broadcast and barrier.
//
// Every rank of a job sends its part of a chunk to the switch; the switch adds the parts in a slot
// of its register pool and multicasts the sum when the last part has come. docs/protocol.md is the
// specification: what a frame looks like, what the switch does with it and why.
//
// This file decides what becomes of a packet: malformed, refused, aggregated, answered or simply
// forwarded. The parts it stands on, in the order a packet meets them:
//   include/parser.p4       bytes to headers
//   include/checksums.p4    verification
//   (here)                  admission, job, forwarding
//   include/aggregation.p4  one contribution
//   include/slot.p4         the state of a slot, one register array each
//   (here)                  egress: each replica's address
// Standard P4_16 for the v1model architecture: no multiplication, no division, each register array
// accessed once per packet.
#include <core.p4>
#include <v1model.p4>

#include "include/config.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/checksums.p4"
#include "include/aggregation.p4"

control SwitchIngress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    counter(INA_JOBS, CounterType.packets_and_bytes) job_packets;
    counter(INA_JOBS, CounterType.packets) job_duplicates;
    counter(INA_JOBS, CounterType.packets) job_stale;
    counter(INA_JOBS, CounterType.packets) job_rejected;
    counter(INA_JOBS, CounterType.packets) job_completions;
    counter(3, CounterType.packets) malformed;

    Aggregation() aggregation;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    table l2 {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            flood;
            drop;
        }
        default_action = drop();
        size = 1024;
    }

    action admit() {
    }

    action reject() {
        mark_to_drop(standard_metadata);
    }

    // Who may speak as which rank of which job. Nothing a host writes into a packet gets it past
    // this table, and the slice of the pool it may touch comes from `jobs`, not from the packet.
    table admission {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.ethernet.src: exact;
            hdr.ipv4.src: exact;
            hdr.ina.job: exact;
            hdr.ina.rank: exact;
        }
        actions = {
            admit;
            reject;
        }
        default_action = reject();
        size = 8192;
    }

    action set_job(bit<16> epoch, bit<15> slot_base, bit<15> slot_limit, bit<32> members,
                   bit<16> group, bit<48> switch_mac, bit<32> switch_ip) {
        meta.job.epoch = epoch;
        meta.job.slot_base = slot_base;
        meta.job.slot_limit = slot_limit;
        meta.job.members = members;
        meta.job.group = group;
        meta.job.switch_mac = switch_mac;
        meta.job.switch_ip = switch_ip;
    }

    action unknown_job() {
        mark_to_drop(standard_metadata);
    }

    table jobs {
        key = {
            hdr.ina.job: exact;
        }
        actions = {
            set_job;
            unknown_job;
        }
        default_action = unknown_job();
        size = INA_JOBS;
    }

    // Addresses a frame from the switch; a multicast replica's destination is set in egress.
    action from_switch(bit<8> opcode, bit<8> flags) {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.job.switch_mac;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = meta.job.switch_ip;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = INA_UDP_PORT;
        hdr.ina.opcode = opcode;
        hdr.ina.epoch = meta.job.epoch;
        hdr.ina.flags = flags;
    }

    action without_lanes() {
        hdr.lanes.setInvalid();
        hdr.udp.length = INA_SHORT_LENGTH;
        hdr.ipv4.total_length = IPV4_HEADER_LENGTH + INA_SHORT_LENGTH;
    }

    action with_lanes() {
        hdr.udp.length = INA_FULL_LENGTH;
        hdr.ipv4.total_length = IPV4_HEADER_LENGTH + INA_FULL_LENGTH;
        hdr.ina.flags = hdr.ina.flags | FLAG_DATA;
    }

    action to_sender() {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action to_job() {
        standard_metadata.mcast_grp = meta.job.group;
    }

    action refuse(bit<32> reason) {
        from_switch(OPCODE_NACK, 0);
        without_lanes();
        hdr.ina.fingerprint = reason;
        to_sender();
    }

    apply {
        bit<16> length = hdr.lanes.isValid() ? INA_FULL_LENGTH : INA_SHORT_LENGTH;
        bit<32> job_index = hdr.ina.job < INA_JOBS ? (bit<32>)hdr.ina.job : 0;

        if (standard_metadata.parser_error != error.NoError) {
            malformed.count(MALFORMED_TRUNCATED);
            drop();
        } else if (!hdr.ina.isValid()) {
            l2.apply();
        } else if (standard_metadata.checksum_error == 1) {
            malformed.count(MALFORMED_CHECKSUM);
            drop();
        } else if (hdr.ina.version != INA_VERSION || hdr.udp.length != length ||
                   hdr.ipv4.total_length != length + IPV4_HEADER_LENGTH ||
                   (hdr.ina.opcode != OPCODE_CONTRIBUTE && hdr.ina.opcode != OPCODE_PROBE)) {
            malformed.count(MALFORMED_HEADER);
            drop();
        } else if (admission.apply().miss) {
            job_rejected.count(job_index);
        } else if (jobs.apply().miss) {
            job_rejected.count(job_index);
        } else if (hdr.ina.epoch != meta.job.epoch) {
            refuse(NACK_EPOCH);
        } else if (hdr.ina.slot >= meta.job.slot_limit) {
            refuse(NACK_SLOT);
        } else if (hdr.ina.opcode == OPCODE_PROBE) {
            from_switch(OPCODE_PROBE_REPLY, 0);
            without_lanes();
            hdr.ina.lane_count = INA_LANES;
            to_sender();
        } else {
            Outcome outcome;
            aggregation.apply(hdr, meta.job, outcome);
            if (outcome == Outcome.STALE) {
                job_stale.count(job_index);
                drop();
            } else if (outcome == Outcome.STATUS) {
                job_duplicates.count(job_index);
                from_switch(OPCODE_STATUS, 0);
                without_lanes();
                to_sender();
            } else if (outcome == Outcome.RESEND) {
                job_duplicates.count(job_index);
                from_switch(OPCODE_RESULT, hdr.ina.flags | FLAG_RETRANSMIT);
                if (hdr.lanes.isValid()) {
                    with_lanes();
                }
                to_sender();
            } else {
                job_packets.count(job_index);
                if (outcome == Outcome.COMPLETE) {
                    job_completions.count(job_index);
                    from_switch(OPCODE_RESULT, hdr.ina.flags);
                    if (hdr.lanes.isValid()) {
                        with_lanes();
                    }
                    to_job();
                } else {
                    drop();
                }
            }
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action set_receiver(bit<48> mac, bit<32> ip, bit<16> rank) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = ip;
        hdr.ina.rank = rank;
    }

    // Gives each replica of a result its receiver. A replica nobody is configured for is not sent.
    table receivers {
        key = {
            hdr.ina.job: exact;
            standard_metadata.egress_rid: exact;
        }
        actions = {
            set_receiver;
            drop;
        }
        default_action = drop();
        size = 8192;
    }

    apply {
        if (standard_metadata.egress_rid != 0) {
            if (hdr.ina.isValid()) {
                receivers.apply();
            } else if (standard_metadata.egress_port == standard_metadata.ingress_port) {
                // A flooded frame does not go back where it came from.
                drop();
            }
        }
    }
}

V1Switch(FrameParser(), ChecksumVerification(), SwitchIngress(), SwitchEgress(), ChecksumUpdate(),
         FrameDeparser()) main;
