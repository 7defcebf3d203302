// Slice, Split, Pad, Trilu and ReverseSequence of ONNX.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/indexing.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {
namespace {

struct SlicePlan {
  Dims start, step, count;  // for every axis
};

SlicePlan slice_plan(const Dims& dims, const Dims& starts, const Dims& ends, const Dims& axes, const Dims& steps) {
  CONCORD_CHECK(starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
                ShapeError, "{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(), axes.size(),
                steps.size());
  SlicePlan plan{Dims(dims.size(), 0), Dims(dims.size(), 1), dims};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], dims.size());
    const std::int64_t size = dims[axis], step = steps[i];
    CONCORD_CHECK(step != 0, ShapeError, "a step of 0");
    if (size == 0) continue;  // it has no last place to begin at
    const auto clamped = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high);
    };
    const bool forward = step > 0;
    const std::int64_t start = forward ? clamped(starts[i], 0, size) : clamped(starts[i], 0, size - 1);
    const std::int64_t end = forward ? clamped(ends[i], 0, size) : clamped(ends[i], -1, size - 1);
    const std::int64_t distance = forward ? end - start : start - end;
    // A step beyond the axis takes one element.
    const std::int64_t stride = std::min<std::int64_t>(step == INT64_MIN ? INT64_MAX : std::abs(step), size + 1);
    plan.start[axis] = start;
    plan.step[axis] = forward ? stride : -stride;
    plan.count[axis] = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  }
  return plan;
}

void slice_of(Call& call) {
  const bool by_input = call.opset() >= 10;
  const Dims starts = by_input ? call.integers(1) : call.required_integers("starts");
  const Dims ends = by_input ? call.integers(2) : call.required_integers("ends");
  Dims axes(starts.size()), steps(starts.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (by_input && call.has(3)) axes = call.integers(3);
  if (by_input && call.has(4)) steps = call.integers(4);
  if (!by_input) axes = call.integers("axes").value_or(axes);
  const SlicePlan plan = slice_plan(call.dims(0), starts, ends, axes, steps);
  if (elements_of(plan.count) == 0) return call.set_empty(0, call.type(0), plan.count);
  if (call.on_host()) {
    const Dims strides = strides_of(call.dims(0));
    return call.set(0, picked(call.host(0), plan.count, [&](const Dims& position) {
                      std::int64_t place = 0;
                      for (std::size_t i = 0; i < position.size(); ++i)
                        place += (plan.start[i] + plan.step[i] * position[i]) * strides[i];
                      return static_cast<std::size_t>(place);
                    }));
  }
  call.set(0, sliced(call.value(0), plan.start, plan.step, plan.count), call.type(0));
}

void split_of(Call& call) {
  const std::size_t axis = axis_of(call.integer("axis", 0), call.rank(0));
  const std::int64_t size = call.dims(0)[axis];
  const auto parts = static_cast<std::int64_t>(call.outputs());
  CONCORD_CHECK(parts > 0, FormatError, "it has no output");
  Dims sizes;
  if (call.has(1)) {
    sizes = call.integers(1);
  } else if (const auto given = call.integers("split")) {
    sizes = *given;
  } else {
    // Since version 18 the last part may be smaller.
    const std::int64_t part = (size + parts - 1) / parts;
    for (std::int64_t k = 0; k < parts; ++k) sizes.push_back(std::clamp<std::int64_t>(size - k * part, 0, part));
  }
  std::int64_t left = size;
  bool fits = sizes.size() == call.outputs();
  for (const std::int64_t one : sizes) {
    fits = fits && one >= 0 && one <= left;
    if (fits) left -= one;
  }
  CONCORD_CHECK(fits && left == 0, ShapeError, "sizes [{}] of {} outputs do not fill {}", fmt::join(sizes, ", "), parts,
                size);
  std::int64_t start = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    Dims dims = call.dims(0);
    dims[axis] = sizes[k];
    if (!call.wants(k)) {
    } else if (elements_of(dims) == 0) {
      call.set_empty(k, call.type(0), dims);
    } else if (call.on_host()) {
      const Dims strides = strides_of(call.dims(0));
      call.set(k, picked(call.host(0), dims, [&](const Dims& position) {
                 std::int64_t place = start * strides[axis];
                 for (std::size_t i = 0; i < position.size(); ++i) place += position[i] * strides[i];
                 return static_cast<std::size_t>(place);
               }));
    } else {
      call.set(k, sliced_along(call.value(0), axis, start, sizes[k]), call.type(0));
    }
    start += sizes[k];
  }
}

// --- padding

PadMode pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "edge") return PadMode::replicate;
  if (name == "wrap") return PadMode::circular;
  throw NotSupported(fmt::format("the mode '{}' is unknown", name));
}

// The place along an axis of `size` that a place before or behind it repeats; nothing for a constant.
std::optional<std::int64_t> repeated_place(PadMode mode, std::int64_t at, std::int64_t size) {
  const auto modulo = [](std::int64_t a, std::int64_t b) { return (a % b + b) % b; };
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case PadMode::constant: return std::nullopt;
    case PadMode::replicate: return std::clamp<std::int64_t>(at, 0, size - 1);
    case PadMode::circular: return modulo(at, size);
    default: break;
  }
  const std::int64_t period = std::max<std::int64_t>(2 * (size - 1), 1), folded = modulo(at, period);
  return std::min(folded, period - folded);
}

// `fill` where the source begins at `before`; of the source the part of `count` elements from `start` on.
HostTensor padded_on_host(const HostTensor& source, PadMode mode, const Dims& before, const Dims& start,
                          const Dims& count, HostTensor result, const HostTensor& fill) {
  const Dims strides = strides_of(source.dims);
  std::size_t next = 0;
  each_position(result.dims, [&](const Dims& position) {
    std::int64_t place = 0;
    bool is_filled = false;
    for (std::size_t i = 0; i < position.size(); ++i) {
      const auto at = repeated_place(mode, position[i] - before[i], count[i]);
      is_filled = is_filled || !at;
      place += (start[i] + at.value_or(0)) * strides[i];
    }
    if (is_filled) {
      result.copy(next++, fill, 0);
    } else {
      result.copy(next++, source, static_cast<std::size_t>(place));
    }
  });
  return result;
}

void pad_of(Call& call) {
  const std::size_t rank = call.rank(0);
  const bool by_input = call.opset() >= 11;
  const Dims pads = by_input ? call.integers(1) : call.required_integers(call.opset() < 2 ? "paddings" : "pads");
  HostTensor fill(call.type(0), {});
  if (by_input && call.has(2) && call.dims(2) != Dims{0}) {
    CONCORD_CHECK(call.host(2).elements() == 1, ShapeError, "input 2 must be a single number");
    fill.copy(0, call.host(2), 0);
  } else {
    fill.set(0, static_cast<double>(call.number("value", 0)));
  }
  Dims axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (by_input && call.has(3)) axes = call.integers(3);
  CONCORD_CHECK(pads.size() == 2 * axes.size(), ShapeError, "{} pads for {} axes", pads.size(), axes.size());
  Dims before(rank, 0), after(rank, 0), start(rank, 0), count = call.dims(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], rank);
    before[axis] = std::max<std::int64_t>(pads[i], 0);
    after[axis] = std::max<std::int64_t>(pads[axes.size() + i], 0);
    start[axis] = std::max<std::int64_t>(-pads[i], 0);  // negative pads cut off
    count[axis] -= start[axis] + std::max<std::int64_t>(-pads[axes.size() + i], 0);
    CONCORD_CHECK(count[axis] >= 0, ShapeError, "pads [{}] leave nothing of axis {}", fmt::join(pads, ", "), axis);
  }
  const PadMode mode = pad_mode(call.text("mode", "constant"));
  Dims dims = count;
  for (std::size_t i = 0; i < rank; ++i) dims[i] += before[i] + after[i];
  if (call.on_host(dims) && (mode == PadMode::constant || elements_of(count) > 0)) {
    return call.set(0, padded_on_host(call.host(0), mode, before, start, count, HostTensor(call.type(0), dims), fill));
  }
  const Value x = sliced(call.value(0), start, Dims(rank, 1), count);
  if (mode == PadMode::constant) {
    return call.set(0, pad(x, before, after, static_cast<float>(fill.number(0))), call.type(0));
  }
  call.set(0, through_f32(x, [&](const Value& numbers) { return pad(numbers, mode, before, after); }), call.type(0));
}

// --- triangles and sequences

void trilu(Call& call) {
  const std::int64_t k = call.has(1) ? call.integer(1) : 0;
  const bool upper = call.integer("upper", 1) != 0;
  if (call.on_host() && call.rank(0) >= 2) {
    const Dims& dims = call.dims(0);
    const std::int64_t columns = dims.back(), rows = dims[dims.size() - 2];
    HostTensor result(call.type(0), dims);
    for (std::int64_t i = 0; i < result.elements(); ++i) {
      const std::int64_t row = i / columns % rows, column = i % columns;
      const auto place = static_cast<std::size_t>(i);
      if (upper ? column - row >= k : column - row <= k) result.copy(place, call.host(0), place);
    }
    return call.set(0, std::move(result));
  }
  const auto offset = static_cast<float>(std::clamp<std::int64_t>(k, -(1 << 24), 1 << 24));
  const auto formula = [&](const std::vector<Scalar>& x) {
    const Scalar column = scalar::coordinate(0), diagonal = scalar::coordinate(1) + offset;
    const Scalar kept = upper ? scalar::less_equal(diagonal, column) : scalar::less_equal(column, diagonal);
    return scalar::select(kept, x[0], 0.0F);
  };
  set_pointwise(call, "trilu", {0}, formula, call.type(0));
}

void reverse_sequence(Call& call) {
  const std::size_t time = axis_of(call.integer("time_axis", 0), call.rank(0));
  const std::size_t batch = axis_of(call.integer("batch_axis", 1), call.rank(0));
  const Dims& dims = call.dims(0);
  require_countable(dims[time]);
  Dims lengths(dims.size(), 1);
  lengths[batch] = dims[batch];
  const Scalar step = scalar::coordinate(static_cast<int>(dims.size() - 1 - time)), length = scalar::input(0);
  const Value places =
      pointwise("reversed", {reshape(call.value(1), Shape(lengths))},
                scalar::select(scalar::less(step, length), length - 1.0F - step, step), DType::i32, Shape(dims));
  call.set(0, gather_along(call.value(0), places, static_cast<std::int64_t>(time)), call.type(0));
}

}  // namespace

void add_slices(Table& table) {
  table.add("Slice", {.run = slice_of, .host = true});
  table.add("Slice", {.since = 10, .run = slice_of, .known = {1, 2, 3, 4}, .host = true});
  table.add("Split", {.run = split_of, .known = {1}, .host = true});
  table.add("Pad", {.run = pad_of, .host = true});
  table.add("Pad", {.since = 11, .run = pad_of, .known = {1, 2, 3}, .host = true});
  table.add("Trilu", {.since = 14, .run = trilu, .known = {1}, .host = true});
  table.add("ReverseSequence", {.since = 10, .run = reverse_sequence});
}

}  // namespace concord::onnx
