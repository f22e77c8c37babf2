// The headers of a frame and what the program remembers about a packet on its way.
// Field for field as in docs/protocol.md, section 1.
#ifndef PYCOLLECTIVE_HEADERS_P4
#define PYCOLLECTIVE_HEADERS_P4

#include "config.p4"
#include "repeat.p4"

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header ina_t {
    bit<8> version;
    bit<8> opcode;
    bit<8> reduce_op;
    bit<8> element_type;
    bit<16> job;
    bit<16> rank;
    bit<16> epoch;
    bit<15> slot;
    bit<1> slot_version;
    bit<32> sequence;
    bit<32> chunk;
    bit<16> lane_count;
    int<8> exponent;
    bit<8> flags;
    bit<32> fingerprint;
}

#define LANE_FIELD(n) bit<32> l##n;
header lanes_t {
    LANES(LANE_FIELD)
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    ina_t ina;
    lanes_t lanes;
}

// What the `jobs` table knows about the packet's job.
struct job_t {
    bit<16> epoch;
    bit<15> slot_base;
    bit<15> slot_limit;
    bit<32> members;
    bit<16> group;
    bit<48> switch_mac;
    bit<32> switch_ip;
}

struct metadata_t {
    job_t job;
    // What a checksum over data that contains its own checksum must come to. Always 0.
    bit<16> intact;
}

#endif
