// What the data gradient of a strided convolution by phases needs beside its products (src/opencl/conv/polyphase.cpp): weights
// packed by phase, and values at places that no tap reaches.
#include "gemm/operands.h"

// weights (rows, channels, taps): tap t goes to phase (rows, table[t].y taps, channels), which begins at table[t].x, as its
// tap table[t].z; nowhere when table[t].y is 0. A work-item owns a channel of a row. 8 bytes an element.
__kernel void conv_polyphase_pack(__global const float *restrict weights, ulong weights_offset, __global float *restrict packed,
                               ulong packed_offset, uint channels, uint taps, __global const uint4 *restrict table) {
  const uint channel = (uint)get_global_id(0);
  const ulong row = get_global_id(1);
  weights += weights_offset + (row * channels + channel) * taps;
  packed += packed_offset + channel;
  for (uint t = 0; t < taps; ++t) {
    const uint4 to = table[t];
    if (to.y != 0) packed[to.x + (row * to.y + to.z) * channels] = weights[t];
  }
}

#ifdef C_CHANNELS_LAST
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"

// The epilogue of 0 where a row or column is not reached, of which each has a byte in `reached` behind one for the slice.
// A work-item owns a block of 8 channels at a place; `blocks` a place, `plane` places an image. 2 bytes an element.
__kernel void conv_polyphase_fill_blocks(uint count, uint blocks, uint plane, uint rows, uint columns,
                                      __global const uchar *restrict reached, __global uint4 *c,
                                      ulong c_offset EPILOGUE_PARAMETERS) {
  const uint at = (uint)get_global_id(0);
  if (at >= count) return;
  const uint place = at / blocks, image = place / plane, row = (place - image * plane) / columns;
  const uint column = place - image * plane - row * columns;
  if (reached[1 + row] & reached[1 + rows + column]) return;
  float values[BLOCK_CHANNELS];
  EACH_CHANNEL(e) values[e] = 0.0f;
  EPILOGUE_BLOCK(values, at, image, (at - place * blocks) * BLOCK_CHANNELS);
  c[c_offset + at] = block_of(values);
}
#else
#define FILL_NUMBERS(NUMBER)                                                                 \
  NUMBER(uint, plane) NUMBER(uint, count) NUMBER(uint, groups) DIVISOR_NUMBERS(NUMBER, page) \
  DIVISOR_NUMBERS(NUMBER, line) NUMBER(uint, slices) NUMBER(uint, rows) GEMM_C_NUMBERS(NUMBER)
typedef struct { FILL_NUMBERS(NUMBER_MEMBER) } fill_numbers;

// The epilogue of 0 where a slice, row or column is not reached, of which each has a byte in `reached`. A work-item owns
// `count` neighbouring places of a row; global ids are (places / count, channel of the group, image and group). 4 bytes an
// element.
__kernel void conv_polyphase_fill(__global const uchar *restrict reached, __global float *c,
                                  const fill_numbers numbers EPILOGUE_PARAMETERS) {
  FILL_NUMBERS(NUMBER_CONSTANT)
  const uint place = (uint)get_global_id(0) * count, m = (uint)get_global_id(1), z = (uint)get_global_id(2);
  if (place >= plane) return;
  const uint slice = DIVIDE(place, page), in_slice = place - slice * page;
  const uint row = DIVIDE(in_slice, line), column = in_slice - row * line;
  const uchar row_is_reached = reached[slice] & reached[slices + row];
  reached += slices + rows + column;
  const uint image = z / groups, group = z - image * groups;
  c += c_offset + group * c_batch;
  for (uint i = 0; i < count; ++i) {
    if (row_is_reached & reached[i]) continue;
    c[(index_t)m * c_m + C_COLUMN(image, place + i)] = EPILOGUE(0.0f, group, m, image, place + i);
  }
}
#endif
