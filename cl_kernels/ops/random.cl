// Random numbers from the Philox stream named by `state` = (seed low, seed high, step, 0) and `purpose`: element i is a
// function of its index alone. A work-item owns four neighbours, which share a block of the generator.
#include "shared/attention_dropout.h"
#include "shared/channels_last.h"
#include "shared/philox.h"

// The uniform distribution is bit-equal on every device: its product is rounded before the sum.
#pragma OPENCL FP_CONTRACT OFF

static inline ulong random_seed(__global const int* state) {
  return (ulong)(uint)state[0] | ((ulong)(uint)state[1] << 32);
}

static inline float4 random_uniform4(const ulong block, const uint purpose, __global const int* state) {
  const philox_block words = philox4x32(block, purpose, (uint)state[2], random_seed(state));
  const uint4 bits = (uint4)(words.word[0], words.word[1], words.word[2], words.word[3]) >> 8;
  return convert_float4(bits) * 5.9604644775390625e-8f;
}

static inline void random_write(__global float* dst, const ulong first, const float4 values, const ulong n) {
  if (first + 4 <= n) {
    vstore4(values, 0, dst + first);
    return;
  }
  dst[first] = values.x;
  if (first + 1 < n) dst[first + 1] = values.y;
  if (first + 2 < n) dst[first + 2] = values.z;
}

// a + scale · u
__kernel void random_uniform(__global const int* state, const ulong state_offset, __global float* dst,
                             const ulong dst_offset, const float a, const float scale, const uint purpose,
                             const ulong n) {
  const ulong item = get_global_id(0);
  if (4 * item >= n) return;
  const float4 u = random_uniform4(item, purpose, state + state_offset);
  random_write(dst + dst_offset, 4 * item, a + scale * u, n);
}

// Box and Muller on the uniforms of indices 2i and 2i + 1; 1 - u is never 0.
__kernel void random_normal(__global const int* state, const ulong state_offset, __global float* dst,
                            const ulong dst_offset, const float mean, const float deviation, const uint purpose,
                            const ulong n) {
  const ulong item = get_global_id(0);
  if (4 * item >= n) return;
  const float4 first = random_uniform4(2 * item, purpose, state + state_offset);
  const float4 second = random_uniform4(2 * item + 1, purpose, state + state_offset);
  const float4 u = (float4)(first.x, first.z, second.x, second.z);
  const float4 v = (float4)(first.y, first.w, second.y, second.w);
  const float4 z = sqrt(-2.0f * log(1.0f - u)) * cospi(2.0f * v);
  random_write(dst + dst_offset, 4 * item, mean + deviation * z, n);
}

// `value` with this probability, else 0
__kernel void random_bernoulli(__global const int* state, const ulong state_offset, __global float* dst,
                               const ulong dst_offset, const float probability, const float value, const uint purpose,
                               const ulong n) {
  const ulong item = get_global_id(0);
  if (4 * item >= n) return;
  const float4 u = random_uniform4(item, purpose, state + state_offset);
  random_write(dst + dst_offset, 4 * item, select((float4)(0.0f), (float4)(value), u < probability), n);
}

// `value` for the weights (batch, heads, queries, keys) that attention with the same `keep` keeps, else 0
__kernel void random_attention(__global const uint* state, const ulong state_offset, __global float* dst,
                               const ulong dst_offset, const uint keep, const float value, const uint purpose,
                               const uint queries, const uint keys, const ulong n) {
  const ulong item = get_global_id(0);
  if (item >= n) return;
  state += state_offset;
  const attention_dropout dropout = dropout_of(state[0], state[1], state[2], purpose, keep);
  const ulong row = item / keys;
  const bool is_kept =
      keeps_weight(dropout, (uint)(row / queries), (uint)(row % queries), (uint)(item % keys), queries);
  dst[dst_offset + item] = is_kept ? value : 0.0f;
}

// As random_bernoulli with value 1, in blocks of 8 numbers of 16 bits.
__kernel void random_mask_of_tokens(__global const int* state, const ulong state_offset, __global uint4* dst,
                                    const ulong dst_offset, const float probability, const uint purpose,
                                    const uint blocks) {
  const uint item = (uint)get_global_id(0);
  if (item >= blocks) return;
  float values[BLOCK_CHANNELS];
  for (uint half_number = 0; half_number < 2; ++half_number) {
    const float4 u = random_uniform4(2 * (ulong)item + half_number, purpose, state + state_offset);
    vstore4(select((float4)(0.0f), (float4)(1.0f), u < probability), half_number, values);
  }
  dst[dst_offset + item] = block_of(values);
}
