// PC_MULTIVERSION before a function compiles it once for each generation of x86-64 vector units and
// lets the dynamic linker pick the widest one the machine has.
//
// It needs ELF indirect functions, so it is nothing where there are none (musl, macOS) or the
// processor is another one; the loops are then compiled for the baseline. A macro, because an
// attribute cannot be chosen any other way. PC_BASELINE_ONLY turns it off, so that tests can run
// the baseline on a machine that would pick another version.
#pragma once

#include <cstddef>  // defines __GLIBC__ where the C library is glibc

#if !defined(PC_BASELINE_ONLY) && defined(__x86_64__) && defined(__GLIBC__) && \
    defined(__GNUC__) && !defined(__clang__)
#define PC_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PC_MULTIVERSION
#endif
