// DPAS of Intel's GPUs by cl_intel_subgroup_matrix_multiply_accumulate: C (8 x LANES) += A (8 x 16)·B (16 x LANES). By the
// text of the extension lane l brings, as component r of A, numbers 2·l and 2·l + 1 of row r in sub-groups of 8, number l in
// those of 16; as component i of B numbers 2·i and 2·i + 1 of column l; and holds C(r, l) as component r.
#if UNITS == DPAS_8 || UNITS == DPAS_16
#define FRAGMENT_M 8
#define FRAGMENT_N LANES
#define STEP_CHUNKS 2
#define SUMS 8
typedef float8 sums_t;
typedef int8 right_t, b_registers;
#define RIGHT_FRAGMENT(tile, lines, chunk, line)                      \
  as_int8(joined((tile)[CHUNK_PLACE(lines, chunk, line, lane)],      \
                  (tile)[CHUNK_PLACE(lines, (chunk) + 1, line, lane)]))

// Component r: of a row's 16 numbers in two chunks the part that is the lane's.
#if UNITS == DPAS_8
#define LANES 8
typedef int part_t;
typedef int8 left_t, a_registers;
#else
#define LANES 16
typedef short part_t;
typedef short8 left_t, a_registers;
#endif
#define LEFT_PART(tile, lines, chunk, line, r)                                                                         \
  ((__local const part_t *)((tile) + CHUNK_PLACE(lines, (chunk) + lane / (LANES / 2), line, r)))[lane % (LANES / 2)]
#define LEFT_FRAGMENT(tile, lines, chunk, line)                                                      \
  ((left_t)(LEFT_PART(tile, lines, chunk, line, 0), LEFT_PART(tile, lines, chunk, line, 1),          \
            LEFT_PART(tile, lines, chunk, line, 2), LEFT_PART(tile, lines, chunk, line, 3),          \
            LEFT_PART(tile, lines, chunk, line, 4), LEFT_PART(tile, lines, chunk, line, 5),          \
            LEFT_PART(tile, lines, chunk, line, 6), LEFT_PART(tile, lines, chunk, line, 7)))

#define SUM_ROW(e) (e)
#define SUM_COLUMN lane
#define MULTIPLY(sums, left, right) INSTRUCTION(sums, left, right)

#ifdef EMULATED
#elif PRECISION == BF16
#define INSTRUCTION(sums, a, b) sums = intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, sums);
#else
#define INSTRUCTION(sums, a, b) sums = intel_sub_group_f16_f16_matrix_mad_k16(a, b, sums);
#endif
#endif
