// Functions that move values, built of the copy and resample families: adding and removing axes, splitting and
// stacking, repetition, reversal, padding from the tensor itself, channel and pixel shuffles.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// Inserts an axis of size 1 before `axis`; -1 appends it after the last axis.
Value unsqueeze(Value x, std::int64_t axis);
/// Removes an axis of size 1.
Value squeeze(Value x, std::int64_t axis);
/// Repeats x along its axes of size 1 and along new leading axes. Keeps the type of x; integers pass through float,
/// which is exact up to 2^24. Throws ShapeError if x does not broadcast to `shape`.
Value broadcast_to(Value x, const Shape& shape);

/// Splits x into consecutive parts of these sizes, whose sum is the size of the axis.
std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
/// Splits x into at most `chunks` parts of size ⌈size/chunks⌉; the last may be smaller. As torch.chunk.
std::vector<Value> chunk(Value x, std::int64_t chunks, std::int64_t axis = 0);
/// Joins values of one shape along a new axis.
Value stack(const std::vector<Value>& values, std::int64_t axis = 0);
/// Selects slices of x along an axis by indices i32 (I). An index outside the axis gives NaN in f32 and 0 in
/// other types.
Value index_select(Value x, std::int64_t axis, Value indices);

// The following functions take f32 only.
/// Reverses x along the axes.
Value flip(Value x, const std::vector<std::int64_t>& axes);
/// Repeats the whole tensor repeats[i] times along axis i.
Value tile(Value x, const std::vector<std::int64_t>& repeats);
/// Repeats each slice along the axis `repeats` times.
Value repeat_interleave(Value x, std::int64_t repeats, std::int64_t axis);

enum class PadMode : std::uint8_t {
  constant,
  reflect,    // mirrors at the first and last value, which are not repeated; padding < size of the axis
  replicate,  // repeats the first and last value
  circular,   // takes values from the other end
};
/// Pads each dimension with before[i] and after[i] elements, >= 0. `value` is for PadMode::constant only.
Value pad(Value x, PadMode mode, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
          float value = 0);
/// Pads the spatial axes of x (N, C, spatial…). `sizes` has two numbers for each axis, from the last axis to the first:
/// left, right, top, bottom, ….
Value pad_spatial(Value x, PadMode mode, std::span<const std::int64_t> sizes, float value = 0);

/// x (N, C·r², H, W) → (N, C, H·r, W·r) (Shi et al., "Real-Time Single Image and Video Super-Resolution", 2016).
Value pixel_shuffle(Value x, std::int64_t factor);
/// x (N, C, H·r, W·r) → (N, C·r², H, W).
Value pixel_unshuffle(Value x, std::int64_t factor);
/// Reorders the channels of x (N, C, …): takes one channel of each of `groups` groups in turn (Zhang et al.,
/// "ShuffleNet", 2017).
Value channel_shuffle(Value x, std::int64_t groups);

/// indices i32 (…) → f32 (…, classes): 1 at the index, else 0. An index outside [0, classes) gives zeros.
Value one_hot(Value indices, std::int64_t classes);
/// `value` where the mask is not 0, else x. The mask broadcasts to x. Keeps the type of x, as broadcast_to does; among
/// integers `value` is what `cast` makes of it.
Value masked_fill(Value x, Value mask, float value);
/// The index of the minimum; the first of equal values. A NaN counts as the smallest.
Value argmin(Value x, std::int64_t axis, bool keep_dims = false);

}  // namespace concord
