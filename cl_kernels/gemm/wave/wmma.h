// WMMA of AMD's RDNA GPUs in waves of 32: C (16 x 16) += A (16 x 16)·B (16 x 16). By AMD's RDNA 3 and RDNA 4 ISA guides (and
// the matrix instruction calculator of ROCm) on
//   RDNA 3   lane l brings all 16 numbers of row l % 16 of A and of column l % 16 of B, so that both halves of the wave
//            bring the same, and holds C(2·e + l / 16, l % 16) as number e
//   RDNA 4   lane l brings 8 of these numbers, and holds C(8·(l / 16) + e, l % 16) as number e
#if UNITS == WMMA || UNITS == WMMA_12
#define LANES 32
#define FRAGMENT_M 16
#define FRAGMENT_N 16
#define STEP_CHUNKS 2
#define SUMS 8
typedef float8 sums_t;

#if UNITS == WMMA
typedef uint8 left_t, right_t, a_registers, b_registers;
#define LEFT_FRAGMENT(tile, lines, chunk, line)                     \
  (joined((tile)[CHUNK_PLACE(lines, chunk, line, lane % 16)],      \
           (tile)[CHUNK_PLACE(lines, (chunk) + 1, line, lane % 16)]))
#define SUM_ROW(e) ((e) * 2 + lane / 16)
#else
typedef uint4 left_t, right_t, a_registers, b_registers;
#define LEFT_FRAGMENT(tile, lines, chunk, line) ((tile)[CHUNK_PLACE(lines, (chunk) + lane / 16, line, lane % 16)])
#define SUM_ROW(e) (lane / 16 * 8 + (e))
#endif
#define RIGHT_FRAGMENT LEFT_FRAGMENT
#define SUM_COLUMN (lane % 16)
#define MULTIPLY(sums, left, right) INSTRUCTION(sums, left, right)

#ifdef EMULATED
#elif UNITS == WMMA && PRECISION == BF16
#define INSTRUCTION(sums, a, b) sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), sums);
#elif UNITS == WMMA
typedef half halves_t __attribute__((ext_vector_type(16)));
#define INSTRUCTION(sums, a, b)                                                                                  \
  sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_astype(a, halves_t), __builtin_astype(b, halves_t), sums);
#elif PRECISION == BF16
#define INSTRUCTION(sums, a, b) \
  sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as_short8(a), as_short8(b), sums);
#else
typedef half halves_t __attribute__((ext_vector_type(8)));
#define INSTRUCTION(sums, a, b)                                                                                        \
  sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_astype(a, halves_t), __builtin_astype(b, halves_t), \
                                                          sums);
#endif
#endif
