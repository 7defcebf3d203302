// The instructions of matrix units in plain OpenCL C, for tests of gemm/wave.cl on devices that have none. The lanes lay
// their registers out in local memory, and each number of the result is computed of what the documents say where its factors
// are: A(i, k) is number A_NUMBER of lane A_LANE, B(k, j) number B_NUMBER of lane B_LANE, C(i, j) number C_NUMBER of lane
// C_LANE, for k < DEPTH. gemm/wave/mfma.h, gemm/wave/wmma.h and gemm/wave/dpas.h are written the other way round, from lanes to numbers.
#ifdef EMULATED

#if UNITS == MFMA && PRECISION == FP32
#define DEPTH 4
#define A_NUMBERS 1
#define A_LANE(i, k) (16 * (k) + (i))
#define A_NUMBER(i, k) 0
#elif UNITS == MFMA
#define DEPTH 16
#define A_NUMBERS 4
#define A_LANE(i, k) (16 * ((k) / 4) + (i))
#define A_NUMBER(i, k) ((k) / 2 % 2 * 2 + (k) % 2)
#elif UNITS == WMMA
// In lanes i and i + 16: now from one, now from the other.
#define DEPTH 16
#define A_NUMBERS 16
#define A_LANE(i, k) ((i) + ((i) + (k)) % 2 * 16)
#define A_NUMBER(i, k) (k)
#elif UNITS == WMMA_12
#define DEPTH 16
#define A_NUMBERS 8
#define A_LANE(i, k) (16 * ((k) / 4 % 2) + (i))
#define A_NUMBER(i, k) (2 * (2 * ((k) / 8) + (k) / 2 % 2) + (k) % 2)
#else
#define DEPTH 16
#define A_NUMBERS (8 * DEPTH / LANES)
#define A_LANE(i, k) ((k) * LANES / DEPTH)
#define A_NUMBER(i, k) ((i) * (DEPTH / LANES) + (k) % (DEPTH / LANES))
#define B_NUMBERS 16
#define B_LANE(k, j) (j)
#define B_NUMBER(k, j) (k)
#endif
#ifndef B_NUMBERS
#define B_NUMBERS A_NUMBERS
#define B_LANE(k, j) A_LANE(j, k)
#define B_NUMBER(k, j) A_NUMBER(j, k)
#endif

#if UNITS == MFMA
#define C_LANE(i, j) (16 * ((i) / 4) + (j))
#define C_NUMBER(i, j) ((i) % 4)
#elif UNITS == WMMA
#define C_LANE(i, j) (16 * (i) % 32 + (j))
#define C_NUMBER(i, j) ((i) / 2)
#elif UNITS == WMMA_12
#define C_LANE(i, j) (16 * ((i) / 8) + (j))
#define C_NUMBER(i, j) ((i) % 8)
#else
#define C_LANE(i, j) (j)
#define C_NUMBER(i, j) (i)
#endif

#if PRECISION == FP32
typedef float number_t;
#define VALUE_AT(numbers, i) (numbers)[i]
#elif PRECISION == BF16
typedef ushort number_t;
#define VALUE_AT(numbers, i) as_float((uint)(numbers)[i] << 16)
#else
typedef ushort number_t;
#define VALUE_AT(numbers, i) vload_half(i, (__local const half *)(numbers))
#endif

// What a wave lays out, in units of 16 bytes: the numbers of A, of B, of C.
#define B_BEGIN (LANES * A_NUMBERS / CHUNK)
#define C_BEGIN (B_BEGIN + LANES * B_NUMBERS / CHUNK)
#define EXCHANGE (C_BEGIN + LANES * SUMS / 4)

static inline __attribute__((always_inline)) void emulate_products(__local uint4 *exchange, uint lane) {
  __local const number_t *a_numbers = (__local const number_t *)exchange;
  __local const number_t *b_numbers = (__local const number_t *)(exchange + B_BEGIN);
  __local float *c_numbers = (__local float *)(exchange + C_BEGIN);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint at = lane; at < FRAGMENT_M * FRAGMENT_N; at += LANES) {
    const uint i = at / FRAGMENT_N, j = at % FRAGMENT_N;
    float sum = 0.0f;
    EACH(k, DEPTH) {
      sum += VALUE_AT(a_numbers, A_LANE(i, k) * A_NUMBERS + A_NUMBER(i, k)) *
             VALUE_AT(b_numbers, B_LANE(k, j) * B_NUMBERS + B_NUMBER(k, j));
    }
    c_numbers[C_LANE(i, j) * SUMS + C_NUMBER(i, j)] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

#define INSTRUCTION(sums, a, b)                                      \
  {                                                                  \
    __local uint4 *of_wave = exchange + wave * EXCHANGE;             \
    ((__local a_registers *)of_wave)[lane] = a;                      \
    ((__local b_registers *)(of_wave + B_BEGIN))[lane] = b;          \
    emulate_products(of_wave, lane);                                 \
    sums += ((__local const sums_t *)(of_wave + C_BEGIN))[lane];     \
  }
#endif
