// Functions that move values, as compositions of the copy and resample families: axes added and dropped, parts and
// stacks, repetition, reversal, padding from the tensor itself, and the shuffles of channels and pixels.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// A new axis of size 1 before `axis`; -1 is behind the last.
Value unsqueeze(Value x, std::int64_t axis);
/// Without this axis, which has size 1.
Value squeeze(Value x, std::int64_t axis);
/// x repeated along its axes of size 1, and along new ones in front; f32. Throws ShapeError unless x broadcasts to
/// shape.
Value broadcast_to(Value x, const Shape& shape);

/// Consecutive parts of these sizes along an axis, which they fill.
std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
/// At most `chunks` parts of ⌈size/chunks⌉, the last one maybe smaller, as torch.chunk.
std::vector<Value> chunk(Value x, std::int64_t chunks, std::int64_t axis = 0);
/// Values of one shape side by side along a new axis.
Value stack(const std::vector<Value>& values, std::int64_t axis = 0);
/// Slices of x along an axis, by i32 indices (I); an index outside gives NaN.
Value index_select(Value x, std::int64_t axis, Value indices);

// f32 only:
/// Reversed along the axes.
Value flip(Value x, const std::vector<std::int64_t>& axes);
/// x[…] as a whole repeats[i] times along axis i; one number an axis.
Value tile(Value x, const std::vector<std::int64_t>& repeats);
/// Each slice along the axis `repeats` times.
Value repeat_interleave(Value x, std::int64_t repeats, std::int64_t axis);

enum class PadMode : std::uint8_t {
  constant,
  reflect,    // mirrored at the first and last value, which are not repeated; less than the axis's size
  replicate,  // the first and last value
  circular,   // from the other end
};
/// `before` and `after` per dimension, >= 0; `value` for constant only.
Value pad(Value x, PadMode mode, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
          float value = 0);
/// x (N, C, spatial…) with 2 sizes for each spatial axis, from the last axis to the first: left, right, top, bottom, ….
Value pad_spatial(Value x, PadMode mode, std::span<const std::int64_t> sizes, float value = 0);

/// x (N, C·r², H, W) → (N, C, H·r, W·r) (Shi et al., "Real-Time Single Image and Video Super-Resolution", 2016).
Value pixel_shuffle(Value x, std::int64_t factor);
/// x (N, C, H·r, W·r) → (N, C·r², H, W).
Value pixel_unshuffle(Value x, std::int64_t factor);
/// Channels of x (N, C, …) in another order: those of `groups` groups in turn (Zhang et al., "ShuffleNet", 2017).
Value channel_shuffle(Value x, std::int64_t groups);

/// i32 indices (…) → f32 (…, classes), 1 at the index; an index outside [0, classes) gives zeros.
Value one_hot(Value indices, std::int64_t classes);
/// `value` where the mask, broadcast to x, is not 0; else x.
Value masked_fill(Value x, Value mask, float value);
/// The place of the smallest value, the first of equal ones; NaN counts as smallest.
Value argmin(Value x, std::int64_t axis, bool keep_dims = false);

}  // namespace concord
