// The P4_16 core library: what every architecture's programs may use.
// Declarations as the language specification gives them (version 1.2.5, appendix D).
#ifndef _CORE_P4_
#define _CORE_P4_

// What can go wrong while parsing; programs may add to it.
error {
    NoError,
    PacketTooShort,         // fewer bits left than extract, lookahead or advance want
    NoMatch,                // select without a case that matches
    StackOutOfBounds,       // next or last of a header stack that has none
    HeaderTooShort,         // a varbit field longer than its type
    ParserTimeout,          // the parser took too long
    ParserInvalidArgument   // an argument the implementation cannot work with
}

// The packet as a parser sees it: a cursor that moves over bits.
extern packet_in {
    // Fills a header of fixed size and makes it valid.
    void extract<T>(out T hdr);
    // The same with one varbit field, which gets this many bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // The next bits as a value of T; the cursor stays.
    T lookahead<T>();
    // Moves the cursor by so many bits.
    void advance(in bit<32> sizeInBits);
    // The length of the packet in bytes.
    bit<32> length();
}

// The packet as a deparser makes it.
extern packet_out {
    // Appends a header if it is valid; of a struct, stack or union everything in it.
    void emit<T>(in T hdr);
}

// In a parser: goes on if the condition holds, else to reject with this error.
extern void verify(in bool check, in error toSignal);

// The action of a table that names no default action.
@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,    // value and mask
    lpm         // value and length of the prefix
}

// Checked by the compiler; the result is always true, so that it can initialize a constant.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
