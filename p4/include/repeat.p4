// Repetition for the preprocessor: LANES(M) is M(00) M(01) ... once for every lane.
// Lanes are numbered in hexadecimal: two digits up to 256 lanes, three beyond.
#ifndef PYCOLLECTIVE_REPEAT_P4
#define PYCOLLECTIVE_REPEAT_P4

#define REPEAT_16(M, p) \
    M(p##0) M(p##1) M(p##2) M(p##3) \
    M(p##4) M(p##5) M(p##6) M(p##7) \
    M(p##8) M(p##9) M(p##a) M(p##b) \
    M(p##c) M(p##d) M(p##e) M(p##f)

#define REPEAT_256(M, p) \
    REPEAT_16(M, p##0) REPEAT_16(M, p##1) REPEAT_16(M, p##2) REPEAT_16(M, p##3) \
    REPEAT_16(M, p##4) REPEAT_16(M, p##5) REPEAT_16(M, p##6) REPEAT_16(M, p##7) \
    REPEAT_16(M, p##8) REPEAT_16(M, p##9) REPEAT_16(M, p##a) REPEAT_16(M, p##b) \
    REPEAT_16(M, p##c) REPEAT_16(M, p##d) REPEAT_16(M, p##e) REPEAT_16(M, p##f)

#if INA_LANES == 16
#define LANES(M) \
    REPEAT_16(M, 0)
#elif INA_LANES == 32
#define LANES(M) \
    REPEAT_16(M, 0) REPEAT_16(M, 1)
#elif INA_LANES == 64
#define LANES(M) \
    REPEAT_16(M, 0) REPEAT_16(M, 1) REPEAT_16(M, 2) REPEAT_16(M, 3)
#elif INA_LANES == 128
#define LANES(M) \
    REPEAT_16(M, 0) REPEAT_16(M, 1) REPEAT_16(M, 2) REPEAT_16(M, 3) \
    REPEAT_16(M, 4) REPEAT_16(M, 5) REPEAT_16(M, 6) REPEAT_16(M, 7)
#elif INA_LANES == 256
#define LANES(M) \
    REPEAT_16(M, 0) REPEAT_16(M, 1) REPEAT_16(M, 2) REPEAT_16(M, 3) \
    REPEAT_16(M, 4) REPEAT_16(M, 5) REPEAT_16(M, 6) REPEAT_16(M, 7) \
    REPEAT_16(M, 8) REPEAT_16(M, 9) REPEAT_16(M, a) REPEAT_16(M, b) \
    REPEAT_16(M, c) REPEAT_16(M, d) REPEAT_16(M, e) REPEAT_16(M, f)
#elif INA_LANES == 512
#define LANES(M) \
    REPEAT_256(M, 0) REPEAT_256(M, 1)
#elif INA_LANES == 1024
#define LANES(M) \
    REPEAT_256(M, 0) REPEAT_256(M, 1) REPEAT_256(M, 2) REPEAT_256(M, 3)
#elif INA_LANES == 2048
#define LANES(M) \
    REPEAT_256(M, 0) REPEAT_256(M, 1) REPEAT_256(M, 2) REPEAT_256(M, 3) \
    REPEAT_256(M, 4) REPEAT_256(M, 5) REPEAT_256(M, 6) REPEAT_256(M, 7)
#else
#error "INA_LANES must be 16, 32, 64, 128, 256, 512, 1024 or 2048"
#endif

#endif
