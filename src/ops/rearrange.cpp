// Functions that move values.
#include "concord/ops/rearrange.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/resample.hpp"

namespace concord {
namespace {

using Kind = ops::AxisMap::Kind;

std::vector<std::int64_t> dims_of(Value x) { return {x.shape().dims().begin(), x.shape().dims().end()}; }

/// The type of values that are moved and not computed with: integers stay what they are.
DType kept_type(Value x) { return x.dtype() == DType::i32 || x.dtype() == DType::u8 ? x.dtype() : DType::f32; }

Kind kind_of(PadMode mode) {
  switch (mode) {
    case PadMode::reflect: return Kind::reflect;
    case PadMode::replicate: return Kind::replicate;
    case PadMode::circular: return Kind::circular;
    case PadMode::constant: break;
  }
  throw ArgumentError("padding with a constant is not an index map");
}

/// The axes that the maps belong to and that they change, mapped.
Value mapped(Value x, const std::vector<std::pair<std::size_t, ops::AxisMap>>& list) {
  std::vector<std::size_t> axes;
  std::vector<ops::AxisMap> maps;
  for (const auto& [axis, map] : list) {
    axes.push_back(axis);
    maps.push_back(map);
  }
  return resample(x, axes, maps);
}

void expect_2d_images(const char* function, Value x) {
  CONCORD_CHECK(x.shape().rank() == 4, ShapeError, "{}: expected (N, C, rows, columns), got {}", function,
                x.shape().str());
}

}  // namespace

Value unsqueeze(Value x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  CONCORD_CHECK(axis >= -rank - 1 && axis <= rank, ShapeError, "unsqueeze: axis {} for {}", axis, x.shape().str());
  std::vector<std::int64_t> dims = dims_of(x);
  dims.insert(dims.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return reshape(x, Shape(std::move(dims)));
}

Value squeeze(Value x, std::int64_t axis) {
  const std::size_t index = x.shape().index_of(axis);
  std::vector<std::int64_t> dims = dims_of(x);
  CONCORD_CHECK(dims[index] == 1, ShapeError, "squeeze: axis {} of {} must have size 1", axis, x.shape().str());
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(index));
  return reshape(x, Shape(std::move(dims)));
}

Value broadcast_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Value wide = pointwise("expand", {x}, scalar::input(0), kept_type(x), shape);
  CONCORD_CHECK(wide.shape() == shape, ShapeError, "broadcast_to: {} does not broadcast to {}", x.shape().str(),
                shape.str());
  return wide;
}

std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  CONCORD_CHECK(std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 0; }) &&
                    std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == x.shape()[axis],
                ShapeError, "split: sizes [{}] do not fill axis {} of {}", fmt::join(sizes, ", "), axis,
                x.shape().str());
  std::vector<Value> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(slice(x, axis, start, start + size));
    start += size;
  }
  return parts;
}

std::vector<Value> chunk(Value x, std::int64_t chunks, std::int64_t axis) {
  CONCORD_CHECK(chunks >= 1, ArgumentError, "chunk: at least one chunk, got {}", chunks);
  const std::int64_t size = x.shape()[axis], part = std::max<std::int64_t>(1, (size + chunks - 1) / chunks);
  std::vector<std::int64_t> sizes;
  for (std::int64_t start = 0; start < size; start += part) sizes.push_back(std::min(part, size - start));
  return split(x, sizes, axis);
}

Value stack(const std::vector<Value>& values, std::int64_t axis) {
  CONCORD_CHECK(!values.empty(), ArgumentError, "stack: needs at least one value");
  std::vector<Value> wide;
  for (const Value& value : values) {
    CONCORD_CHECK(value.shape() == values[0].shape(), ShapeError, "stack: shapes {} and {} differ",
                  values[0].shape().str(), value.shape().str());
    wide.push_back(unsqueeze(value, axis));
  }
  return concat(wide, axis);
}

Value index_select(Value x, std::int64_t axis, Value indices) {
  CONCORD_CHECK(indices.shape().rank() == 1, ShapeError, "index_select: indices must be i32 [I], got {}",
                indices.spec().str());
  std::vector<std::int64_t> order(x.shape().rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[x.shape().index_of(axis)]);
  return transpose(gather(transpose(x, order), indices), order);
}

Value flip(Value x, const std::vector<std::int64_t>& axes) {
  std::vector<std::size_t> sorted;
  for (const std::int64_t axis : axes) sorted.push_back(x.shape().index_of(axis));
  std::ranges::sort(sorted);
  CONCORD_CHECK(std::ranges::adjacent_find(sorted) == sorted.end(), ShapeError,
                "flip: axes [{}] of {} contain an axis twice", fmt::join(axes, ", "), x.shape().str());
  std::vector<std::pair<std::size_t, ops::AxisMap>> maps;
  for (const std::size_t axis : sorted) {
    const std::int64_t size = x.shape().dims()[axis];
    maps.push_back({axis, {.kind = Kind::flip, .src = size, .dst = size}});
  }
  return mapped(x, maps);
}

Value tile(Value x, const std::vector<std::int64_t>& repeats) {
  CONCORD_CHECK(
      repeats.size() == x.shape().rank() && std::ranges::all_of(repeats, [](std::int64_t times) { return times >= 1; }),
      ShapeError, "tile: {} needs a positive number for each axis, got [{}]", x.shape().str(),
      fmt::join(repeats, ", "));
  std::vector<std::pair<std::size_t, ops::AxisMap>> maps;
  for (std::size_t axis = 0; axis < repeats.size(); ++axis) {
    const std::int64_t size = x.shape().dims()[axis];
    if (repeats[axis] == 1) continue;
    maps.push_back({axis, {.kind = Kind::circular, .src = size, .dst = size * repeats[axis]}});
  }
  return mapped(x, maps);
}

Value repeat_interleave(Value x, std::int64_t repeats, std::int64_t axis) {
  CONCORD_CHECK(repeats >= 1, ArgumentError, "repeat_interleave: at least once, got {}", repeats);
  if (repeats == 1) return x;
  const std::size_t index = x.shape().index_of(axis);
  const std::int64_t size = x.shape().dims()[index];
  return mapped(x, {{index, {.kind = Kind::repeat, .src = size, .dst = size * repeats, .count = repeats}}});
}

Value pad(Value x, PadMode mode, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
          float value) {
  if (mode == PadMode::constant) return pad(x, before, after, value);
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(before.size() == rank && after.size() == rank, ShapeError,
                "pad: {} needs {} sizes before and after, got {} and {}", x.shape().str(), rank, before.size(),
                after.size());
  std::vector<std::pair<std::size_t, ops::AxisMap>> maps;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t size = x.shape().dims()[axis];
    const std::int64_t most = std::max(before[axis], after[axis]);
    CONCORD_CHECK(before[axis] >= 0 && after[axis] >= 0 && (mode != PadMode::reflect || most < size), ShapeError,
                  "pad: {}: {} before and {} after axis {}: sizes must be >= 0, and below {} to be reflected",
                  x.shape().str(), before[axis], after[axis], axis, size);
    if (most == 0) continue;
    maps.push_back(
        {axis, {.kind = kind_of(mode), .src = size, .dst = before[axis] + size + after[axis], .count = before[axis]}});
  }
  return mapped(x, maps);
}

Value pad_spatial(Value x, PadMode mode, std::span<const std::int64_t> sizes, float value) {
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(rank == 2 + sizes.size() / 2, ShapeError, "pad: expected (N, C) and {} spatial axes, got {}",
                sizes.size() / 2, x.shape().str());
  std::vector<std::int64_t> before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) (i % 2 == 0 ? before : after)[rank - 1 - i / 2] = sizes[i];
  return pad(x, mode, before, after, value);
}

Value pixel_shuffle(Value x, std::int64_t factor) {
  expect_2d_images("pixel_shuffle", x);
  const Shape& s = x.shape();
  CONCORD_CHECK(factor >= 1 && s[1] % (factor * factor) == 0, ShapeError,
                "pixel_shuffle: the channels of {} do not divide by the square of {}", s.str(), factor);
  const Value parts = reshape(x, {s[0], s[1] / (factor * factor), factor, factor, s[2], s[3]});
  return reshape(transpose(parts, {0, 1, 4, 2, 5, 3}), {s[0], -1, s[2] * factor, s[3] * factor});
}

Value pixel_unshuffle(Value x, std::int64_t factor) {
  expect_2d_images("pixel_unshuffle", x);
  const Shape& s = x.shape();
  CONCORD_CHECK(factor >= 1 && s[2] % factor == 0 && s[3] % factor == 0, ShapeError,
                "pixel_unshuffle: rows and columns of {} do not divide by {}", s.str(), factor);
  const Value parts = reshape(x, {s[0], s[1], s[2] / factor, factor, s[3] / factor, factor});
  return reshape(transpose(parts, {0, 1, 3, 5, 2, 4}), {s[0], -1, s[2] / factor, s[3] / factor});
}

Value channel_shuffle(Value x, std::int64_t groups) {
  const Shape& s = x.shape();
  CONCORD_CHECK(s.rank() >= 2 && groups >= 1 && s[1] % groups == 0, ShapeError,
                "channel_shuffle: {} groups do not divide the channels of {}", groups, s.str());
  const Value parts = reshape(x, {s[0], groups, s[1] / groups, -1});
  return reshape(transpose(parts, {0, 2, 1, 3}), s);
}

Value one_hot(Value indices, std::int64_t classes) {
  CONCORD_CHECK(indices.dtype() == DType::i32 && classes >= 1, ShapeError,
                "one_hot: i32 indices and at least one class needed, got {} and {}", indices.spec().str(), classes);
  std::vector<std::int64_t> dims = dims_of(indices);
  dims.push_back(classes);
  return pointwise("one_hot", {unsqueeze(indices, -1)}, scalar::equal(scalar::coordinate(0), scalar::input(0)),
                   DType::f32, Shape(std::move(dims)));
}

Value masked_fill(Value x, Value mask, float value) {
  const Value filled =
      pointwise("masked_fill", {x, mask}, scalar::select(scalar::input(1), value, scalar::input(0)), kept_type(x));
  CONCORD_CHECK(filled.shape() == x.shape(), ShapeError, "masked_fill: the mask {} does not broadcast to {}",
                mask.shape().str(), x.shape().str());
  return filled;
}

Value argmin(Value x, std::int64_t axis, bool keep_dims) { return argmax(-x, axis, keep_dims); }

}  // namespace concord
