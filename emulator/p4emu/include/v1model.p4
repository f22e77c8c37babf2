// The v1model architecture, the one of BMv2's simple_switch: parser, checksum verification,
// ingress, traffic manager, egress, checksum computation, deparser.
//
// Names, types and meanings are those of the documented interface, so that a program compiles here
// and with p4c alike. V1MODEL_VERSION 20200408 and later make the index type of counters, meters
// and registers a parameter.
#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include "core.p4"

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

const bit<32> __v1model_version = V1MODEL_VERSION;

match_kind {
    range,      // from a value to another, both included
    optional,   // exact, or anything
    selector    // input to the hash of an action selector
}

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#define V1MODEL_PORT PortId_t
#define V1MODEL_INDEXED(T) <I>
#define V1MODEL_INDEX I
#else
#define V1MODEL_PORT bit<9>
#define V1MODEL_INDEXED(T)
#define V1MODEL_INDEX bit<32>
#endif

// What the switch and the program tell each other about a packet. @alias: BMv2's own name.
@metadata @name("standard_metadata")
struct standard_metadata_t {
    V1MODEL_PORT ingress_port;
    V1MODEL_PORT egress_spec;   // set by ingress: where to; 511 drops
    V1MODEL_PORT egress_port;   // read in egress: where this copy goes
    bit<32> instance_type;      // 0 normal, 1 ingress clone, 2 egress clone, 4 recirculated,
                                // 5 replica, 6 resubmitted
    bit<32> packet_length;      // bytes
    @alias("queueing_metadata.enq_timestamp")
    bit<32> enq_timestamp;      // microseconds
    @alias("queueing_metadata.enq_qdepth")
    bit<19> enq_qdepth;         // packets
    @alias("queueing_metadata.deq_timedelta")
    bit<32> deq_timedelta;      // microseconds in the queue
    @alias("queueing_metadata.deq_qdepth")
    bit<19> deq_qdepth;         // packets
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48> ingress_global_timestamp;   // microseconds
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48> egress_global_timestamp;    // microseconds
    @alias("intrinsic_metadata.mcast_grp")
    bit<16> mcast_grp;          // set by ingress: multicast group; 0 is none
    @alias("intrinsic_metadata.egress_rid")
    bit<16> egress_rid;         // replica number within the group
    bit<1> checksum_error;      // 1 if a verify_checksum failed
    error parser_error;
    @alias("intrinsic_metadata.priority")
    bit<3> priority;            // queue
}

enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

enum MeterType {
    packets,
    bytes
}

// Colours that meters give.
#define V1MODEL_METER_COLOR_GREEN 0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED 2

// An array of `size` counters that the control plane reads. An index out of range counts nothing.
extern counter V1MODEL_INDEXED(I) {
    counter(bit<32> size, CounterType type);
    void count(in V1MODEL_INDEX index);
}

// One counter for each entry of the table that has `counters = this`; a hit counts by itself.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

// An array of meters. `result` is one of the colours; with an index out of range it is anything.
extern meter V1MODEL_INDEXED(I) {
    meter(bit<32> size, MeterType type);
    void execute_meter<T>(in V1MODEL_INDEX index, out T result);
}

// One meter for each entry of the table that has `meters = this`.
extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}

// An array of values that packets read and write. An index out of range writes nothing.
#if V1MODEL_VERSION >= 20200408
extern register<T, I> {
#else
extern register<T> {
#endif
    register(bit<32> size);
    @noSideEffects
    void read(out T result, in V1MODEL_INDEX index);
    void write(in V1MODEL_INDEX index, in T value);
}

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

// The actions of a table that has `implementation = this` are members that entries refer to.
extern action_profile {
    action_profile(bit<32> size);
}

// Like action_profile; an entry may also refer to a group, from which a hash of the keys of kind
// `selector` picks a member.
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

enum CloneType {
    I2E,    // from ingress, of the packet as it came
    E2E     // from egress, of the packet as it leaves
}

// A random number from lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

// Sends the fields of `data` to the control plane.
extern void digest<T>(in bit<32> receiver, in T data);

// Sets egress_spec to the drop port and mcast_grp to 0; a later assignment undoes it.
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);
@deprecated("give standard_metadata as the argument")
@pure
extern void mark_to_drop();

// base + hash(data) modulo max; base if max is 0.
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

@deprecated("use verify_checksum and update_checksum")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

// In checksum verification: sets checksum_error if `condition` holds and `checksum` is not that of
// `data`. _with_payload: data, then all bytes that were not parsed.
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum,
                                               HashAlgorithm algo);

// In checksum computation: sets `checksum` to that of `data` if `condition` holds.
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum,
                                  HashAlgorithm algo);
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum,
                                               HashAlgorithm algo);

// Parses the packet again from the start, when ingress has ended. Metadata fields that are
// annotated @field_list(index) keep their values.
extern void resubmit_preserving_field_list(bit<8> index);
@deprecated("use resubmit_preserving_field_list")
extern void resubmit<T>(in T data);

// Puts the packet back into the parser, when the deparser has made it.
extern void recirculate_preserving_field_list(bit<8> index);
@deprecated("use recirculate_preserving_field_list")
extern void recirculate<T>(in T data);

// Sends a copy to egress; the clone session says to which ports.
extern void clone(in CloneType type, in bit<32> session);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);
@deprecated("use clone_preserving_field_list")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);

// Cuts the packet to so many bytes.
extern void truncate(in bit<32> length);

// Stop the switch with a message if the condition is false. assume: the same, for verifiers a
// promise instead of an obligation.
extern void assert(in bool check);
extern void assume(in bool check);

// Writes to the log; each {} in the message is the next field of `data`.
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// The programmable blocks. H: a struct of headers, header stacks and unions. M: a struct.
parser Parser<H, M>(packet_in b, out H parsedHdr, inout M meta,
                    inout standard_metadata_t standard_metadata);

control VerifyChecksum<H, M>(inout H hdr, inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

control ComputeChecksum<H, M>(inout H hdr, inout M meta);

@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p,
                       VerifyChecksum<H, M> vr,
                       Ingress<H, M> ig,
                       Egress<H, M> eg,
                       ComputeChecksum<H, M> ck,
                       Deparser<H> dep);

#endif
