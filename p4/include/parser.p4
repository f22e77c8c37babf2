// From bytes to headers and back. A frame that is not ours is parsed only as far as it needs to be
// forwarded; the rest of it is payload.
#ifndef PYCOLLECTIVE_PARSER_P4
#define PYCOLLECTIVE_PARSER_P4

#include "headers.p4"

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        meta.intact = 0;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    // IPv4 options and fragments are left to forwarding.
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            INA_UDP_PORT: ina;
            default: accept;
        }
    }

    state ina {
        packet.extract(hdr.ina);
        transition select(hdr.ina.flags) {
            FLAG_DATA &&& FLAG_DATA: lanes;
            default: accept;
        }
    }

    state lanes {
        packet.extract(hdr.lanes);
        transition accept;
    }
}

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.ina);
        packet.emit(hdr.lanes);
    }
}

#endif
