// One of each object that a P4Runtime client can write: matches of every kind, counters, registers.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header key_t {
    bit<32> address;
    bit<12> small;
    bit<4> nibble;
    bit<16> number;
}

struct headers_t {
    ethernet_t ethernet;
    key_t key;
}

struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.key);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control I(inout headers_t hdr, inout metadata_t meta,
          inout standard_metadata_t standard_metadata) {
    counter(4, CounterType.packets_and_bytes) seen;
    counter(8, CounterType.packets) only_packets;
    direct_counter(CounterType.packets_and_bytes) hits;
    register<bit<20>>(16) unsigned_cells;
    register<int<20>>(4) signed_cells;

    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    action rewrite(bit<48> dst, bit<9> port) {
        hdr.ethernet.dst = dst;
        standard_metadata.egress_spec = port;
    }
    action drop() { mark_to_drop(standard_metadata); }
    action multicast(bit<16> group) { standard_metadata.mcast_grp = group; }

    table exact_table {
        key = {
            hdr.ethernet.dst: exact;
            hdr.key.small: exact;
        }
        actions = { forward; rewrite; multicast; @defaultonly drop; }
        default_action = drop();
        counters = hits;
        size = 4;
    }
    table lpm_table {
        key = { hdr.key.address: lpm; }
        actions = { @tableonly forward; drop; }
        default_action = drop();
    }
    table ternary_table {
        key = {
            hdr.key.address: ternary;
            hdr.key.number: range;
            hdr.key.nibble: optional;
        }
        actions = { forward; drop; }
        const default_action = drop();
    }
    table const_table {
        key = { hdr.key.nibble: exact; }
        actions = { forward; NoAction; }
        const entries = {
            1: forward(1);
            2: forward(2);
        }
    }

    apply {
        bit<20> a;
        int<20> b;
        seen.count((bit<32>) standard_metadata.ingress_port);
        only_packets.count(0);
        unsigned_cells.read(a, 0);
        unsigned_cells.write(0, a + 1);
        signed_cells.read(b, 0);
        signed_cells.write(0, b - 1);
        if (!exact_table.apply().hit) {
            if (!lpm_table.apply().hit) {
                if (!ternary_table.apply().hit) {
                    const_table.apply();
                }
            }
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta,
          inout standard_metadata_t standard_metadata) { apply {} }

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.key);
    }
}

V1Switch(P(), Verify(), I(), E(), Compute(), D()) main;
