// The loops of batch normalisation over one part of a batch, vectorised, for images stored in fp32 and in bf16. Used by
// normalise.
#pragma once

#include <cstdint>

#include "bf16_simd.hpp"

namespace concord::cpu {

/// Most channels that a part has.
inline constexpr std::int64_t kNormChannels = 256;

/// The values of `channels` neighbouring channels in `rows` rows, which are `stride` values apart. A row has either one
/// value of each channel (contiguous channels) or `run` contiguous values of a single channel.
struct NormPart {
  std::int64_t rows, stride, run, channels;
  bool by_channel;  // one channel with runs; else rows of channels
  [[nodiscard]] std::int64_t count() const { return by_channel ? rows * run : rows; }
};

/// The mean of each channel of a part and Σ (src − mean)². With `wide` in double throughout: where squares of
/// single-precision numbers leave fp32.
void batch_norm_statistics(const float* src, const NormPart& part, bool wide, double* mean, double* squares);
void batch_norm_statistics(const Bf16* src, const NormPart& part, bool wide, double* mean, double* squares);

/// dst = (src − mean)·factor + shift by channel.
void batch_norm_forward(const float* src, const NormPart& part, const float* mean, const float* factor,
                        const float* shift, float* dst);
void batch_norm_forward(const Bf16* src, const NormPart& part, const float* mean, const float* factor,
                        const float* shift, Bf16* dst);

/// Sums of a part by channel for the gradient. `diff` is a number near the mean of diff_dst in this part.
struct NormSums {
  double diff;        // a number near the mean of diff_dst
  double deviations;  // Σ (diff_dst − diff)
  double products;    // Σ (diff_dst − diff)·(src − mean)
  double centred;     // Σ (src − mean)
};
void batch_norm_backward_sums(const float* src, const float* diff_dst, const NormPart& part, bool wide,
                              const float* mean, NormSums* sums);
void batch_norm_backward_sums(const Bf16* src, const Bf16* diff_dst, const NormPart& part, bool wide, const float* mean,
                              NormSums* sums);

/// diff_src = factor·((diff_dst − diff_mean) − (src − mean)·slope + rest) by channel.
struct NormGradient {
  const float *factor, *diff_mean, *mean, *slope, *rest;
};
void batch_norm_backward(const float* src, const float* diff_dst, const NormPart& part, const NormGradient& by,
                         float* diff_src);
void batch_norm_backward(const Bf16* src, const Bf16* diff_dst, const NormPart& part, const NormGradient& by,
                         Bf16* diff_src);

}  // namespace concord::cpu
