// MFMA of AMD's CDNA GPUs: C (16 x 16) += A (16 x K)·B (K x 16), K = 16, or 4 in fp32. By AMD's Instinct MI200 and MI300 ISA
// guides (and the matrix instruction calculator of ROCm) lane l brings of row l % 16 of A, and of column l % 16 of B, the
// K / 4 numbers from k = l / 16·(K / 4) on, and holds C(4·(l / 16) + e, l % 16) as number e.
#if UNITS == MFMA
#define LANES 64
#define FRAGMENT_M 16
#define FRAGMENT_N 16
#define STEP_CHUNKS 4
#define SUMS 4
typedef float4 sums_t;
typedef uint4 left_t, right_t;

// Lane group l / 16 takes chunk l / 16, which several instructions use up.
#define LEFT_FRAGMENT(tile, lines, chunk, line) ((tile)[CHUNK_PLACE(lines, (chunk) + lane / 16, line, lane % 16)])
#define RIGHT_FRAGMENT LEFT_FRAGMENT
#define SUM_ROW(e) (lane / 16 * 4 + (e))
#define SUM_COLUMN (lane % 16)

#if PRECISION == FP32
typedef float a_registers, b_registers;
#define MULTIPLY(sums, left, right)                            \
  {                                                            \
    INSTRUCTION(sums, as_float((left).x), as_float((right).x)) \
    INSTRUCTION(sums, as_float((left).y), as_float((right).y)) \
    INSTRUCTION(sums, as_float((left).z), as_float((right).z)) \
    INSTRUCTION(sums, as_float((left).w), as_float((right).w)) \
  }
#else
typedef uint2 a_registers, b_registers;
#define MULTIPLY(sums, left, right)          \
  {                                          \
    INSTRUCTION(sums, (left).lo, (right).lo) \
    INSTRUCTION(sums, (left).hi, (right).hi) \
  }
#endif

#ifdef EMULATED
#elif PRECISION == FP32
#define INSTRUCTION(sums, a, b) sums = __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, sums, 0, 0, 0);
#elif PRECISION == BF16
#define INSTRUCTION(sums, a, b) \
  sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a), as_short4(b), sums, 0, 0, 0);
#else
typedef half halves_t __attribute__((ext_vector_type(4)));
#define INSTRUCTION(sums, a, b)                                                                                    \
  sums = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_astype(a, halves_t), __builtin_astype(b, halves_t), sums, 0, 0, \
                                               0);
#endif
#endif
