// The inner loops of resampling, in vectors of the processor: weighted sums of rows of bytes, and pixels that change
// places. Whole numbers throughout, so that every processor has the same bytes. Used by resample.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "concord/data/image/resample_taps.hpp"

namespace concord::data {

/// Sums read and write whole vectors of so many bytes.
inline constexpr std::size_t kSumBytes = 32;

/// dst[i] = Σ weights[k]·src[k·stride + i], rounded, for i < bytes and k < 2·pairs.
using WeightedSum = void(const std::uint8_t* src, std::size_t stride, const FilterTaps::Pixel& taps, std::size_t bytes,
                         std::uint8_t* dst);

/// Those that this processor can run, the fastest first. Their bytes are the same.
[[nodiscard]] std::span<WeightedSum* const> weighted_sums();

/// Transposes 16 rows of 16 bytes.
void transpose_16(const std::uint8_t* src, std::size_t src_stride, std::uint8_t* dst, std::size_t dst_stride);

/// Row of pixels of three channels → a row of each channel, mirrored if asked.
using ChannelSeparation = void(const std::uint8_t* src, std::size_t pixels, bool mirror, std::uint8_t* red,
                               std::uint8_t* green, std::uint8_t* blue);

/// Those that this processor can run, the fastest first. Their bytes are the same.
[[nodiscard]] std::span<ChannelSeparation* const> channel_separations();

/// The fastest.
inline void separate_channels(const std::uint8_t* src, std::size_t pixels, bool mirror, std::uint8_t* red,
                              std::uint8_t* green, std::uint8_t* blue) {
  channel_separations().front()(src, pixels, mirror, red, green, blue);
}

}  // namespace concord::data
