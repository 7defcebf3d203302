// Images that lie channels-last (src/opencl/formula/channels_last.hpp): blocks of 8 neighbouring channels are 16 bytes of bf16
// numbers, or of IEEE half precision where NUMBERS_F16 is defined. With PTX the conversions are instructions of NVIDIA's
// GPUs from compute capability 8.0 on. A kernel may take blocks of BLOCK_CHANNELS = 2.
#ifndef CONCORD_CHANNELS_LAST_H
#define CONCORD_CHANNELS_LAST_H

#ifndef BLOCK_CHANNELS
#define BLOCK_CHANNELS 8
#endif
#define EACH_CHANNEL(e) _Pragma("unroll") for (uint e = 0; e < BLOCK_CHANNELS; ++e)

// Two numbers of 16 bits as floats, and two floats as the nearest such numbers; the first one in the low bits.
#if defined(NUMBERS_F16) && defined(PTX)
static inline float2 floats_of(uint pair) {
  float2 values;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(values.x), "=f"(values.y) : "r"(pair));
  return values;
}
static inline uint pair_of(float low, float high) {
  uint pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#elif defined(NUMBERS_F16)
static inline float2 floats_of(uint pair) { return vload_half2(0, (const half *)&pair); }
static inline uint pair_of(float low, float high) {
  uint pair;
  vstore_half2_rte((float2)(low, high), 0, (half *)&pair);
  return pair;
}
#else
static inline float2 floats_of(uint pair) { return (float2)(as_float(pair << 16), as_float(pair & 0xffff0000u)); }
#ifdef PTX
static inline uint pair_of(float low, float high) {
  uint pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#else
// To the nearest, ties to even; a NaN keeps a bit that stays.
static inline uint bf16_of(float value) {
  const uint bits = as_uint(value);
  return isnan(value) ? (bits >> 16) | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
static inline uint pair_of(float low, float high) { return bf16_of(low) | bf16_of(high) << 16; }
#endif
#endif

// Blocks, and what holds floats of one or more neighbouring channels of an operand by channel.
#if BLOCK_CHANNELS == 2
typedef uint block_t;
typedef float2 channels_t;
static inline void read_channels(float *values, __global const float2 *from, uint channel) {
  const float2 pair = from[channel / 2];
  values[0] = pair.x;
  values[1] = pair.y;
}
static inline void read_block(float *values, uint block) {
  const float2 pair = floats_of(block);
  values[0] = pair.x;
  values[1] = pair.y;
}
#else
typedef uint4 block_t;
typedef float4 channels_t;
static inline void read_channels(float *values, __global const float4 *from, uint channel) {
  const float4 low = from[channel / 4], high = from[channel / 4 + 1];
  values[0] = low.x;
  values[1] = low.y;
  values[2] = low.z;
  values[3] = low.w;
  values[4] = high.x;
  values[5] = high.y;
  values[6] = high.z;
  values[7] = high.w;
}
static inline void read_block(float *values, uint4 block) {
  const float2 a = floats_of(block.x), b = floats_of(block.y), c = floats_of(block.z), d = floats_of(block.w);
  values[0] = a.x;
  values[1] = a.y;
  values[2] = b.x;
  values[3] = b.y;
  values[4] = c.x;
  values[5] = c.y;
  values[6] = d.x;
  values[7] = d.y;
}
static inline uint4 block_of(const float *values) {
  return (uint4)(pair_of(values[0], values[1]), pair_of(values[2], values[3]), pair_of(values[4], values[5]),
                 pair_of(values[6], values[7]));
}

#endif
#define BLOCKS_IN_16_BYTES (16 / sizeof(block_t))
#define CHANNELS_IN_16_BYTES (16 / sizeof(channels_t))

#endif
