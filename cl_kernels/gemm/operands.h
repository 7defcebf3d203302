// What the GEMM kernels share: C(m, n) = Σ_k A(m, k)·B(k, n) with A, B and C read and written through strides, or with
// B the patches of an image (implicit GEMM: every pass of a convolution). src/opencl/gemm/arguments.cpp states the arguments.
//
// Definitions: INDEX     int, or long when an operand has 2^31 elements and more
//   A_ALONG_K            A's elements are adjacent along k, else along m
//   A_BLOCKED            k runs in blocks of a_block: A(m, k) at m·a_m + (k / a_block)·a_outer + k % a_block
//   A_PATCH              A(m, k) is the pixel (row, column) of a plane, each a sum of a part of k and a part of m; never
//                        outside the image
//   VOLUME               pixels have a depth too: (depth, row, column)
//   B_ALONG_K            B's elements are adjacent along k, else along n
//   B_BLOCKED            k runs in blocks of k_block: B(k, n) at (k / k_block)·b_k + k % k_block + n·b_n
//   B_PATCH              B(k, n) is the pixel (row, column) of a plane, each a sum of a part of k and a part of n;
//                        0 outside the image; B_INSIDE: never outside
//   B_STEP               rows and columns count in 1/row_step and 1/column_step pixels, slices in 1/depth_step; 0 between
//                        pixels
//   C_BLOCKED            n runs in blocks of c_block: C(m, n) at m·c_m + (n / c_block)·c_outer + n % c_block
//   C_STEPPED            with C_BLOCKED: n % c_block walks over pages of c_page, lines of c_line and columns, and these lie
//                        c_slice_step, c_row_step and c_column_step apart from c_first on
//   C_CHANNELS_LAST      C is stored in blocks of 8 values of m (shared/channels_last.h): C(m, n) is number m of the m_size ones at
//                        the place that n has otherwise
// b_size is the number of elements of B's tensor.
// Group (·, ·, z) works on batch z % batches and the z / batches-th part of k_part values of k; its C is the z-th.
#ifndef CONCORD_GEMM_OPERANDS_H
#define CONCORD_GEMM_OPERANDS_H

#include "shared/numbers.h"

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#endif
#ifndef EPILOGUE
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif

typedef INDEX index_t;

// i / divisor for i < 2^31 by a multiplication (Granlund and Montgomery, "Division by Invariant Integers", 1994).
#define DIVISOR(name) uint name, uint name##_magic, uint name##_shift
#define DIVIDE(i, name) ((mul_hi((uint)(i), name##_magic) + (uint)(i)) >> name##_shift)

// The three numbers of a divisor in a list (shared/numbers.h).
#define DIVISOR_NUMBERS(NUMBER, name) NUMBER(uint, name) NUMBER(uint, name##_magic) NUMBER(uint, name##_shift)

#define GEMM_A_NUMBERS(NUMBER)                                                             \
  NUMBER(ulong, a_offset) NUMBER(ulong, a_batch) NUMBER(index_t, a_m) NUMBER(index_t, a_k) \
  NUMBER(index_t, a_outer) DIVISOR_NUMBERS(NUMBER, a_block)

#ifdef VOLUME
#define DEPTH_NUMBERS(NUMBER)                                                                               \
  DIVISOR_NUMBERS(NUMBER, k_page) NUMBER(int, k_depth) DIVISOR_NUMBERS(NUMBER, n_page) NUMBER(int, n_depth) \
  NUMBER(int, depth_shift) NUMBER(int, depths) DIVISOR_NUMBERS(NUMBER, depth_step)
#else
#define DEPTH_NUMBERS(NUMBER)
#endif

#define GEMM_B_NUMBERS(NUMBER)                                                                                     \
  NUMBER(ulong, b_offset) NUMBER(ulong, b_batch) NUMBER(index_t, b_size) NUMBER(index_t, b_k) NUMBER(index_t, b_n) \
  DIVISOR_NUMBERS(NUMBER, k_block) DIVISOR_NUMBERS(NUMBER, k_line) NUMBER(index_t, k_plane) NUMBER(int, k_row)     \
  NUMBER(int, k_column) DIVISOR_NUMBERS(NUMBER, n_block) DIVISOR_NUMBERS(NUMBER, n_line) NUMBER(index_t, n_plane)  \
  NUMBER(int, n_row) NUMBER(int, n_column) NUMBER(int, row_shift) NUMBER(int, column_shift) NUMBER(int, rows)      \
  NUMBER(int, columns) DIVISOR_NUMBERS(NUMBER, row_step) DIVISOR_NUMBERS(NUMBER, column_step) DEPTH_NUMBERS(NUMBER)

#ifdef C_STEPPED
#define STEP_NUMBERS(NUMBER)                                                            \
  DIVISOR_NUMBERS(NUMBER, c_page) DIVISOR_NUMBERS(NUMBER, c_line) NUMBER(uint, c_first) \
  NUMBER(uint, c_slice_step) NUMBER(uint, c_row_step) NUMBER(uint, c_column_step)
#else
#define STEP_NUMBERS(NUMBER)
#endif

#define GEMM_C_NUMBERS(NUMBER)                                                                 \
  NUMBER(ulong, c_offset) NUMBER(ulong, c_batch) NUMBER(index_t, c_m) NUMBER(index_t, c_outer) \
  DIVISOR_NUMBERS(NUMBER, c_block) STEP_NUMBERS(NUMBER)

#define GEMM_NUMBERS(NUMBER)                                                                                \
  NUMBER(uint, m_size) NUMBER(uint, n_size) NUMBER(uint, k_size) NUMBER(uint, k_part) NUMBER(uint, batches) \
  GEMM_A_NUMBERS(NUMBER) GEMM_B_NUMBERS(NUMBER) GEMM_C_NUMBERS(NUMBER)

#ifdef C_CHANNELS_LAST
#define C_ELEMENTS uint4
#else
#define C_ELEMENTS float
#endif
// A kernel's parameters are these, its own memories, and a struct of GEMM_NUMBERS and its own numbers.
#define GEMM_MEMORIES(MEMORY) MEMORY(const float *restrict, a) MEMORY(const float *restrict, b) MEMORY(C_ELEMENTS *, c)

// Where A(m, k) lies: A_ROW(m) + A_STEP(k).
#if defined(A_PATCH)
#define A_ROW(m) (PATCH_N(m).place)
#define A_STEP(k) (PATCH_K(k).place)
#elif defined(A_ALONG_K)
#define A_ROW(m) ((index_t)(m) * a_m)
#ifdef A_BLOCKED
#define A_STEP(k) ((index_t)DIVIDE(k, a_block) * (a_outer - (index_t)a_block) + (index_t)(k))
#else
#define A_STEP(k) ((index_t)(k))
#endif
#else
#define A_ROW(m) ((index_t)(m))
#define A_STEP(k) ((index_t)(k) * a_k)
#endif

// Where B(k, n) lies when it is no patch.
#ifdef B_BLOCKED
#define B_STEP_OF(k) ((index_t)DIVIDE(k, k_block) * (b_k - (index_t)k_block) + (index_t)(k))
#else
#define B_STEP_OF(k) ((index_t)(k) * b_k)
#endif
#define B_COLUMN_OF(n) ((index_t)(n) * b_n)

// Where a column n of C lies, as block and place in it, and C(m, n).
#ifdef C_BLOCKED
#define C_OUTER(n) DIVIDE(n, c_block)
#define C_INNER(n, outer) C_PLACE((n) - (outer) * c_block)
#else
#define C_OUTER(n) 0u
#define C_INNER(n, outer) (n)
#endif
#ifdef C_STEPPED
static inline uint stepped_place(uint i, DIVISOR(page), DIVISOR(line), uint first, uint slice_step, uint row_step,
                                 uint column_step) {
  const uint slice = DIVIDE(i, page), in_slice = i - slice * page, row = DIVIDE(in_slice, line);
  return first + slice * slice_step + row * row_step + (in_slice - row * line) * column_step;
}
#define C_PLACE(i)                                                                                                \
  stepped_place(i, c_page, c_page_magic, c_page_shift, c_line, c_line_magic, c_line_shift, c_first, c_slice_step, \
                c_row_step, c_column_step)
#else
#define C_PLACE(i) (i)
#endif
#define C_COLUMN(outer, inner) ((index_t)(outer) * c_outer + (index_t)(inner))

#if defined(A_PATCH) || defined(B_PATCH)
typedef struct {
  index_t place;  // of the plane, and without B_STEP of the pixel in it
  int row, column;
#ifdef VOLUME
  int depth;
#endif
} patch_part;

// The depth of a part, and where its slice begins.
#ifdef VOLUME
#define VOLUME_FORMALS , DIVISOR(page), int depth, int depth_shift, int rows
#define VOLUME_ACTUALS(p, offset) , p##_page, p##_page_magic, p##_page_shift, p##_depth, offset, rows
#else
#define VOLUME_FORMALS
#define VOLUME_ACTUALS(p, offset)
#endif

static inline patch_part patch_part_of(uint i, DIVISOR(block), DIVISOR(line), index_t plane, int row, int column,
                                       int row_shift, int column_shift, int columns VOLUME_FORMALS) {
  const uint outer = DIVIDE(i, block);
  uint in_slice = i - outer * block;
  patch_part part;
  part.place = (index_t)outer * plane;
#ifdef VOLUME
  const uint z = DIVIDE(in_slice, page);
  in_slice -= z * page;
  part.depth = (int)z * depth + depth_shift;
#ifndef B_STEP
  part.place += (index_t)part.depth * rows * columns;
#endif
#endif
  const uint y = DIVIDE(in_slice, line), x = in_slice - y * line;
  part.row = (int)y * row + row_shift;
  part.column = (int)x * column + column_shift;
#ifndef B_STEP
  part.place += (index_t)part.row * columns + part.column;
#endif
  return part;
}
#define PATCH_PART(i, p, row_offset, column_offset, depth_offset)                                                 \
  patch_part_of(i, p##_block, p##_block_magic, p##_block_shift, p##_line, p##_line_magic, p##_line_shift, p##_plane, \
                p##_row, p##_column, row_offset, column_offset, columns VOLUME_ACTUALS(p, depth_offset))
#define PATCH_K(i) PATCH_PART(i, k, 0, 0, 0)
#define PATCH_N(i) PATCH_PART(i, n, row_shift, column_shift, depth_shift)

#if !defined(VOLUME)
#define DEPTH_FORMALS
#define DEPTH_ACTUALS
#elif defined(B_STEP)
#define DEPTH_FORMALS , int depths, DIVISOR(depth_step)
#define DEPTH_ACTUALS , depths, depth_step, depth_step_magic, depth_step_shift
#else
#define DEPTH_FORMALS , int depths
#define DEPTH_ACTUALS , depths
#endif

// B(k, n) from the parts of k and n; never reads outside the image.
#if defined(B_INSIDE)
#define PATCH_LOAD(pk, pn) b[(pk).place + (pn).place]
#elif defined(B_STEP)
static inline float patch_load(__global const float *b, patch_part pk, patch_part pn, int rows, int columns,
                               DIVISOR(row_step), DIVISOR(column_step) DEPTH_FORMALS) {
  const int row = pk.row + pn.row, column = pk.column + pn.column;
  const uint r = DIVIDE(max(row, 0), row_step), q = DIVIDE(max(column, 0), column_step);
  int inside = (int)(r * row_step) == row & (int)(q * column_step) == column & r < (uint)rows & q < (uint)columns;
  index_t line = (index_t)r;
#ifdef VOLUME
  const int depth = pk.depth + pn.depth;
  const uint d = DIVIDE(max(depth, 0), depth_step);
  inside &= (int)(d * depth_step) == depth & d < (uint)depths;
  line += (index_t)d * rows;
#endif
  const float value = b[inside ? pk.place + pn.place + line * columns + (index_t)q : 0];
  return inside ? value : 0.0f;
}
#define PATCH_LOAD(pk, pn)                                                                                   \
  patch_load(b, pk, pn, rows, columns, row_step, row_step_magic, row_step_shift, column_step, column_step_magic, \
             column_step_shift DEPTH_ACTUALS)
#else
static inline float patch_load(__global const float *b, patch_part pk, patch_part pn, int rows,
                               int columns DEPTH_FORMALS) {
  int inside = (uint)(pk.row + pn.row) < (uint)rows & (uint)(pk.column + pn.column) < (uint)columns;
#ifdef VOLUME
  inside &= (uint)(pk.depth + pn.depth) < (uint)depths;
#endif
  const float value = b[inside ? pk.place + pn.place : 0];
  return inside ? value : 0.0f;
}
#define PATCH_LOAD(pk, pn) patch_load(b, pk, pn, rows, columns DEPTH_ACTUALS)
#endif
#endif

#endif
