// One element of a product's right operand. With B_PATCH, B(k, n) = b[taps[i].x + places[j].x] where the bits taps[i].y
// are all in places[j].y, else 0; i is n with B_ALONG_K, else k; j, in blocks of place_block that are place_plane
// apart, is the other. src/opencl/gemm/patch_tables.cpp makes the tables.
#ifndef CONCORD_GEMM_ELEMENT_H
#define CONCORD_GEMM_ELEMENT_H

#ifdef B_PATCH
#define TABLE_PARAMETERS TABLE_PARAMETER(const int2 *restrict, taps) TABLE_PARAMETER(const int2 *restrict, places)
#define DECLARE_TABLES DECLARE_TABLE(const int2 *restrict, taps) DECLARE_TABLE(const int2 *restrict, places)
#define TABLE_NUMBERS(NUMBER)                                \
  TABLE_NUMBER(NUMBER, taps) TABLE_NUMBER(NUMBER, places)    \
  DIVISOR_NUMBERS(NUMBER, place_block) NUMBER(int, place_plane)
static inline int2 place_of(uint i, __global const int2 *restrict places, DIVISOR(place_block), int place_plane) {
  const uint outer = DIVIDE(i, place_block);
  const int2 place = places[i - outer * place_block];
  return (int2)(place.x + (int)outer * place_plane, place.y);
}
#define PLACE(i) place_of(i, places, place_block, place_block_magic, place_block_shift, place_plane)
#define IN_IMAGE(tap, place) (((tap).y & (place).y) == (tap).y)
static inline float element_of(__global const float *b, int2 tap, int2 place) {
  return IN_IMAGE(tap, place) ? b[tap.x + place.x] : 0.0f;
}
#ifdef B_ALONG_K
#define RIGHT_ELEMENT(k, n) element_of(b, taps[n], PLACE(k))
#else
#define RIGHT_ELEMENT(k, n) element_of(b, taps[k], PLACE(n))
#endif
#else
#define TABLE_PARAMETERS
#define DECLARE_TABLES
#define TABLE_NUMBERS(NUMBER)
#define RIGHT_ELEMENT(k, n) b[B_STEP_OF(k) + B_COLUMN_OF(n)]
#endif

#endif
