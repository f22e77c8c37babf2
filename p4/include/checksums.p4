// Both checksums of an INA frame, in and out. Other traffic keeps the checksums it came with.
#ifndef PYCOLLECTIVE_CHECKSUMS_P4
#define PYCOLLECTIVE_CHECKSUMS_P4

#include "headers.p4"

// The ones-complement sum does not depend on the order of 16-bit words, so the lanes may come first.
#define LANE_OF_SUM(n) hdr.lanes.l##n,

// The pseudo header, the UDP header without its checksum, and the INA header (RFC 768).
#define UDP_SUM_FIELDS \
    hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.length, \
    hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length, \
    hdr.ina.version, hdr.ina.opcode, hdr.ina.reduce_op, hdr.ina.element_type, \
    hdr.ina.job, hdr.ina.rank, hdr.ina.epoch, hdr.ina.slot, hdr.ina.slot_version, \
    hdr.ina.sequence, hdr.ina.chunk, hdr.ina.lane_count, hdr.ina.exponent, hdr.ina.flags, \
    hdr.ina.fingerprint

#define IPV4_SUM_FIELDS \
    hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, \
    hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, \
    hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst

// The sum includes the checksum field and must come to zero. That accepts both ways of writing a
// checksum that computes to zero (0x0000 and 0xffff); comparing against the field would drop one.
control ChecksumVerification(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ina.isValid(), { IPV4_SUM_FIELDS, hdr.ipv4.checksum }, meta.intact,
                        HashAlgorithm.csum16);
        verify_checksum(hdr.ina.isValid() && hdr.lanes.isValid(),
                        { LANES(LANE_OF_SUM) UDP_SUM_FIELDS, hdr.udp.checksum }, meta.intact,
                        HashAlgorithm.csum16);
        verify_checksum(hdr.ina.isValid() && !hdr.lanes.isValid(),
                        { UDP_SUM_FIELDS, hdr.udp.checksum }, meta.intact, HashAlgorithm.csum16);
    }
}

control ChecksumUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ina.isValid(), { IPV4_SUM_FIELDS }, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        update_checksum(hdr.ina.isValid() && hdr.lanes.isValid(),
                        { LANES(LANE_OF_SUM) UDP_SUM_FIELDS }, hdr.udp.checksum,
                        HashAlgorithm.csum16);
        update_checksum(hdr.ina.isValid() && !hdr.lanes.isValid(), { UDP_SUM_FIELDS },
                        hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

#endif
