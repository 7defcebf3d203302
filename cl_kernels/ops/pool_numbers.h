// The numbers of the kernels of pool.cl and pool_lanes.cl, and the rows of their results.
#ifndef CONCORD_POOL_NUMBERS_H
#define CONCORD_POOL_NUMBERS_H

#include "ops/pool_windows.h"
#include "shared/index.h"

#define DIVISOR_NUMBERS(NUMBER, name) NUMBER(uint, name) NUMBER(uint, name##_multiplier) NUMBER(uint, name##_shift)
#ifdef VOLUME
#define DEPTH_SIZES(NUMBER) \
  DIVISOR_NUMBERS(NUMBER, item_depth) NUMBER(int, depth) NUMBER(int, dst_depth) NUMBER(int, padding_d)
#else
#define DEPTH_SIZES(NUMBER)
#define depth 1
#define dst_depth 1
#define padding_d 0
#endif
#define SIZES(NUMBER) \
  NUMBER(uint, count) DIVISOR_NUMBERS(NUMBER, item_width) DIVISOR_NUMBERS(NUMBER, item_height) \
  NUMBER(int, height) NUMBER(int, width) NUMBER(int, dst_height) NUMBER(int, dst_width) NUMBER(int, padding_h) \
  NUMBER(int, padding_w) DEPTH_SIZES(NUMBER)
typedef struct { MAX_FORWARD_NUMBERS(NUMBER_MEMBER) } max_forward_numbers;
typedef struct { MAX_BACKWARD_NUMBERS(NUMBER_MEMBER) } max_backward_numbers;
typedef struct { AVERAGE_FORWARD_NUMBERS(NUMBER_MEMBER) } average_forward_numbers;
typedef struct { AVERAGE_BACKWARD_NUMBERS(NUMBER_MEMBER) } average_backward_numbers;

// `plane` (the channel), `z` and `y` of a row of the result.
#ifdef VOLUME
#define SPLIT_ROW(row) \
  const uint slice = index_divide(row, item_height, item_height_multiplier, item_height_shift); \
  const uint plane = index_divide(slice, item_depth, item_depth_multiplier, item_depth_shift); \
  const int y = (int)(row - slice * item_height), z = (int)(slice - plane * item_depth);
#else
#define SPLIT_ROW(row) \
  const uint plane = index_divide(row, item_height, item_height_multiplier, item_height_shift); \
  const int y = (int)(row - plane * item_height), z = 0;
#endif

#endif
