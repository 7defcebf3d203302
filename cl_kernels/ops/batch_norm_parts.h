// What batch normalisation of images in channels-last layout computes of a part, in three launches
// (batch_norm_channels_last.cl) or in one (batch_norm_resident.cl): sums, and how a turn is rewritten. The latter keeps
// what its first KEPT turns read: item by item, in `kept`.
#ifndef CONCORD_BATCH_NORM_PARTS_H
#define CONCORD_BATCH_NORM_PARTS_H

#include "ops/batch_norm.h"
#include "shared/channels_last_rows.h"
#include "shared/epilogue_block.h"

#ifndef KEPT
#define KEPT 0
#endif
#define KEPT_PLACE(turn, k) (((turn) * UNROLL + (k)) * THREADS + item)
#define KEEP(to, turn, x) \
  if (KEPT > 0 && (turn) < KEPT) EACH_TURN(k) (to)[KEPT_PLACE(turn, k)] = (x)[k]

// A number of each channel near most others of the part, the mean of four values without the least and the largest; and
// these.
static inline void batch_norm_middle(float *middle, float *least, float *largest, __global const uint4 *src, uint begin,
                                     uint end, uint blocks, uint block) {
  EACH_CHANNEL(e) {
    middle[e] = 0.0f;
    least[e] = INFINITY;
    largest[e] = -INFINITY;
  }
  _Pragma("unroll") for (uint k = 0; k < 4; ++k) {
    float values[BLOCK_CHANNELS];
    read_block(values, src[(ulong)min(begin + k, end - 1) * blocks + block]);
    EACH_CHANNEL(e) {
      middle[e] += values[e] * 0.25f;
      least[e] = fmin(least[e], values[e]);
      largest[e] = fmax(largest[e], values[e]);
    }
  }
  EACH_CHANNEL(e) middle[e] = (middle[e] - least[e] * 0.25f - largest[e] * 0.25f) * 2.0f;
}

#define WIDE (LANES * BLOCK_CHANNELS)  // channels of a group
#define EACH_WIDE(c) for (uint c = item; c < WIDE; c += THREADS)

// The statistics of the part's channels, in `found`, of WIDE places: the mean as a pair, Σ (deviation·unit)², unit. Each is
// there for the item that EACH_WIDE gives the channel, and behind a barrier for all. `scratch` has SCRATCH(2) places.
static inline __attribute__((always_inline)) void batch_norm_part(__local float4 *found, __global const uint4 *src,
                                                                  uint rows, uint blocks, uint part, float epsilon,
                                                                  __local float *scratch, __local uint *again,
                                                                  __local uint4 *kept) {
  PLACE;
  const float inverse = 1.0f / (float)(end - begin);
  float shift[BLOCK_CHANNELS], unit[BLOCK_CHANNELS];
  float sums[2 * BLOCK_CHANNELS], *const sum = sums, *const squares = sums + BLOCK_CHANNELS;
  float least[BLOCK_CHANNELS], largest[BLOCK_CHANNELS];
  READ_FIRST(next, src);  // before the middle, so that nobody waits for both
  batch_norm_middle(shift, least, largest, src, begin, end, blocks, block);
  EACH_CHANNEL(e) unit[e] = 1.0f;
  if (item < LANES) EACH_CHANNEL(e) found[item * BLOCK_CHANNELS + e] = (float4)(shift[e], 0.0f, 0.0f, 1.0f);
  for (uint time = 0;; ++time) {
    EACH_CHANNEL(e) sum[e] = squares[e] = 0.0f;
    uint turn_number = 0;
    TURNS {
      float turn[BLOCK_CHANNELS], turn_squares[BLOCK_CHANNELS];
      READ_NEXT(x, next, src)
      KEEP(kept, turn_number, x);
      ++turn_number;
      EACH_CHANNEL(e) turn[e] = turn_squares[e] = 0.0f;
      EACH_TURN(k) {
        float values[BLOCK_CHANNELS];
        read_block(values, x[k]);
        EACH_CHANNEL(e) {
          const float centred = IS_INSIDE(k) ? (values[e] - shift[e]) * unit[e] : 0.0f;
          turn[e] += centred;
          turn_squares[e] += centred * centred;
        }
      }
      EACH_CHANNEL(e) {
        sum[e] += turn[e];
        squares[e] += turn_squares[e];
      }
    }
    if (item == 0) *again = 0;
    sum_rows_apart(sums, 2, scratch);
    EACH_WIDE(c) {
      const float total = scratch[SUM_OF_ROWS(c % BLOCK_CHANNELS, c / BLOCK_CHANNELS)];
      const float own =
          scratch[SUM_OF_ROWS(c % BLOCK_CHANNELS + BLOCK_CHANNELS, c / BLOCK_CHANNELS)] - total * inverse * total;
      found[c].y = total;
      found[c].z = own < 0.0f ? 0.0f : own;  // NaN stays
      if (time == 0) {
        found[c].w = batch_norm_unit(found[c].z * inverse, epsilon);
        if (found[c].w != 1.0f) *again = 1;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (*again == 0 || time == 1) break;
    EACH_CHANNEL(e) unit[e] = found[lane * BLOCK_CHANNELS + e].w;
    READ_AGAIN(next, src);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  EACH_WIDE(c) {
    const float4 own = found[c];
    found[c].xy = batch_norm_pair(own.x, own.y * inverse * (1.0f / own.w));
  }
}

// The sums of the part's channels for the gradient, in `found`, as batch_norm_rebased takes them, and in `bases`; each there
// as batch_norm_part says. `scratch` has SCRATCH(SUMS_AT_ONCE) places.
#if ROWS_OF_WARP > 1
#define SUMS_AT_ONCE 4
#else
#define SUMS_AT_ONCE 2
#endif
static inline __attribute__((always_inline)) void batch_norm_part_backward(
    __local float4 *found, __local float *bases, __global const uint4 *src, __global const uint4 *diff_dst,
    __global const float *means, __global const float *variances, uint rows, uint blocks, uint part, float epsilon, __local float *scratch,
    __local uint4 *kept, __local uint4 *kept_differences) {
  PLACE;
  float mean[BLOCK_CHANNELS], unit[BLOCK_CHANNELS], base[BLOCK_CHANNELS];
  float sums[4 * BLOCK_CHANNELS], *const sum = sums, *const product = sums + BLOCK_CHANNELS;
  float *const centred = sums + 2 * BLOCK_CHANNELS, *const squares = sums + 3 * BLOCK_CHANNELS;
  float least[BLOCK_CHANNELS], largest[BLOCK_CHANNELS];
  READ_FIRST(next_x, src);
  READ_FIRST(next_d, diff_dst);
  batch_norm_middle(base, least, largest, diff_dst, begin, end, blocks, block);
  EACH_CHANNEL(e) {
    base[e] = batch_norm_base(base[e], least[e], largest[e]);
    mean[e] = means[channel + e];
    unit[e] = batch_norm_unit(variances[channel + e], epsilon);
    sum[e] = product[e] = centred[e] = squares[e] = 0.0f;
    if (item < LANES) bases[item * BLOCK_CHANNELS + e] = base[e];
  }
  uint turn_number = 0;
  TURNS {
    READ_NEXT(x, next_x, src)
    READ_NEXT(d, next_d, diff_dst)
    KEEP(kept, turn_number, x);
    KEEP(kept_differences, turn_number, d);
    ++turn_number;
    EACH_TURN(k) {
      float values[BLOCK_CHANNELS], differences[BLOCK_CHANNELS];
      read_block(values, x[k]);
      read_block(differences, d[k]);
      EACH_CHANNEL(e) {
        const float difference = IS_INSIDE(k) ? differences[e] - base[e] : 0.0f;
        const float deviation = IS_INSIDE(k) ? (values[e] - mean[e]) * unit[e] : 0.0f;
        sum[e] += difference;
        product[e] += difference * deviation;
        centred[e] += deviation;
        squares[e] += deviation * deviation;
      }
    }
  }
#define SUMMED(v) scratch[SUM_OF_ROWS((v) * BLOCK_CHANNELS + c % BLOCK_CHANNELS, c / BLOCK_CHANNELS)]
#if SUMS_AT_ONCE == 4
  sum_rows_apart(sums, 4, scratch);
  EACH_WIDE(c) found[c] = (float4)(SUMMED(0), SUMMED(1), SUMMED(2), SUMMED(3));
#else
  sum_rows_apart(sums, 2, scratch);
  EACH_WIDE(c) found[c].xy = (float2)(SUMMED(0), SUMMED(1));
  sum_rows_apart(sums + 2 * BLOCK_CHANNELS, 2, scratch);
  EACH_WIDE(c) found[c].zw = (float2)(SUMMED(0), SUMMED(1));
#endif
}

// A turn rewritten, through the epilogue: x, the blocks of src, into dst. factor: of each channel mean, what (src − mean)
// is multiplied with, what is added.
#define NORMALISE_TURN(x, factor, dst)                                                          \
  EACH_TURN(k) {                                                                                \
    float values[BLOCK_CHANNELS];                                                               \
    read_block(values, x[k]);                                                                   \
    EACH_CHANNEL(e) values[e] = (values[e] - factor[e].x) * factor[e].y + factor[e].z;          \
    REWRITE(x, values, k)                                                                       \
  }                                                                                             \
  STORE_TURN(dst, x)
// x and d, the blocks of src and diff_dst, into diff_src. factor: of each channel mean, scale·r, diff_shift/count,
// r·diff_scale/count.
#define DIFFERENTIATE_TURN(x, d, factor, diff_src)                                              \
  EACH_TURN(k) {                                                                                \
    float values[BLOCK_CHANNELS], differences[BLOCK_CHANNELS];                                  \
    read_block(values, x[k]);                                                                   \
    read_block(differences, d[k]);                                                              \
    EACH_CHANNEL(e) values[e] =                                                                 \
        factor[e].y * (differences[e] - factor[e].z - (values[e] - factor[e].x) * factor[e].w); \
    REWRITE(x, values, k)                                                                       \
  }                                                                                             \
  STORE_TURN(diff_src, x)
#define REWRITE(x, values, k)                                                \
  EPILOGUE_BLOCK(values, AT(k), min(ROW(k), end - 1) / places, channel);     \
  x[k] = block_of(values);
#define STORE_TURN(dst, x) EACH_TURN(k) if (IS_INSIDE(k) && is_block) dst[AT(k)] = x[k]

#endif
