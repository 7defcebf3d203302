// Operators of ONNX that change a shape or an order: Reshape, Transpose, Expand, Tile, Concat and others.
#include "concord/onnx/operators/views.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {

std::optional<Dims> axes_of(const Call& call, std::int64_t input_since) {
  if (call.opset() < input_since) return call.integers("axes");
  if (!call.has(1)) return std::nullopt;
  return call.integers(1);
}

Value sliced(const Value& x, const Dims& start, const Dims& step, const Dims& count) {
  Dims first = start, stride = step;
  std::vector<std::int64_t> reversed;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] > 0) continue;
    first[i] = start[i] + step[i] * (count[i] - 1);
    stride[i] = -step[i];
    if (count[i] > 1) reversed.push_back(static_cast<std::int64_t>(i));
  }
  Value y = x;
  const bool is_all = dims_of(x) == count && std::ranges::all_of(first, [](std::int64_t s) { return s == 0; });
  if (!is_all) y = x.graph().add(std::make_shared<ops::Slice>(first, stride, Shape(count)), {x});
  if (reversed.empty()) return y;
  return through_f32(y, [&](const Value& numbers) { return flip(numbers, reversed); });
}

Value sliced_along(const Value& x, std::size_t axis, std::int64_t start, std::int64_t count, std::int64_t step) {
  Dims starts(x.shape().rank(), 0), steps(x.shape().rank(), 1), counts = dims_of(x);
  starts[axis] = start;
  steps[axis] = step;
  counts[axis] = count;
  return sliced(x, starts, steps, counts);
}

Value expanded(const Value& x, const Dims& dims) {
  const Shape shape(dims);
  return x.shape() == shape ? x : pointwise("expand", {x}, scalar::input(0), x.dtype(), shape);
}

Value transposed(const Value& x, const Dims& order) {
  if (std::ranges::is_sorted(order)) return x;
  const auto* before = dynamic_cast<const ops::Transpose*>(x.node().op.get());
  if (before == nullptr) return transpose(x, order);
  Dims both;  // of two, one after the other
  for (const std::int64_t axis : order) {
    both.push_back(static_cast<std::int64_t>(before->order()[static_cast<std::size_t>(axis)]));
  }
  const Value source = x.node().inputs[0];
  return std::ranges::is_sorted(both) ? source : transpose(source, both);
}

namespace {

void set_shape(Call& call, Dims dims) {
  if (call.on_host()) return call.set(0, call.host(0).reshaped(std::move(dims)));
  CONCORD_CHECK(elements_of(dims) == elements_of(call.dims(0)), ShapeError, "[{}] does not have the elements of [{}]",
                fmt::join(dims, ", "), fmt::join(call.dims(0), ", "));
  if (elements_of(dims) == 0) return call.set_empty(0, call.type(0), std::move(dims));
  const Value x = call.value(0);
  call.set(0, dims == call.dims(0) ? x : reshape(x, Shape(dims)), call.type(0));
}

void reshape_of(Call& call) {
  Dims dims = call.opset() < 5 ? call.required_integers("shape") : call.integers(1);
  const bool allows_zero = call.integer("allowzero", 0) != 0;
  const Dims& from = call.dims(0);
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allows_zero) {
      CONCORD_CHECK(i < from.size(), ShapeError, "size {} of the new shape is to be taken from [{}]", i,
                    fmt::join(from, ", "));
      dims[i] = from[i];
    }
    CONCORD_CHECK(dims[i] >= -1 && (dims[i] != -1 || open == nullptr), ShapeError, "[{}] is no shape",
                  fmt::join(dims, ", "));
    if (dims[i] == -1) {
      open = &dims[i];
    } else {
      known *= dims[i];
    }
  }
  if (open != nullptr) {
    CONCORD_CHECK(known > 0 && elements_of(from) % known == 0, ShapeError, "[{}] does not divide into [{}]",
                  fmt::join(from, ", "), fmt::join(dims, ", "));
    *open = elements_of(from) / known;
  }
  set_shape(call, std::move(dims));
}

void flatten_of(Call& call) {
  const auto rank = static_cast<std::int64_t>(call.rank(0));
  std::int64_t axis = call.integer("axis", 1);
  CONCORD_CHECK(axis >= -rank && axis <= rank, ShapeError, "axis {} of {} dimensions", axis, rank);
  if (axis < 0) axis += rank;
  const Dims& dims = call.dims(0);
  const auto middle = dims.begin() + axis;
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
  };
  set_shape(call, {product(dims.begin(), middle), product(middle, dims.end())});
}

void squeeze_of(Call& call) {
  const Dims& from = call.dims(0);
  std::vector<bool> removed(from.size(), false);
  if (const auto axes = axes_of(call, 13)) {
    for (const std::int64_t axis : *axes) {
      const std::size_t i = axis_of(axis, from.size());
      CONCORD_CHECK(from[i] == 1, ShapeError, "axis {} of [{}] has not size 1", axis, fmt::join(from, ", "));
      removed[i] = true;
    }
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) removed[i] = from[i] == 1;
  }
  Dims dims;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!removed[i]) dims.push_back(from[i]);
  }
  set_shape(call, std::move(dims));
}

void unsqueeze_of(Call& call) {
  const auto axes = axes_of(call, 13);
  CONCORD_CHECK(axes, FormatError, "it has no axes");
  const std::size_t rank = call.rank(0) + axes->size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t axis : *axes) {
    const std::size_t i = axis_of(axis, rank);
    CONCORD_CHECK(!added[i], ShapeError, "axis {} occurs twice", axis);
    added[i] = true;
  }
  Dims dims;
  auto next = call.dims(0).begin();
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(added[i] ? 1 : *next++);
  set_shape(call, std::move(dims));
}

void identity(Call& call) { call.set(0, call.operand(0)); }

void transpose_of(Call& call) {
  const Dims& from = call.dims(0);
  Dims order(from.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(order.size() - 1 - i);
  if (const auto given = call.integers("perm")) order = *given;
  Dims sorted = order;
  std::ranges::sort(sorted);
  CONCORD_CHECK(order.size() == from.size(), ShapeError, "perm [{}] for [{}]", fmt::join(order, ", "),
                fmt::join(from, ", "));
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    CONCORD_CHECK(sorted[i] == static_cast<std::int64_t>(i), ShapeError, "perm [{}] is no order",
                  fmt::join(order, ", "));
  }
  Dims dims;
  for (const std::int64_t axis : order) dims.push_back(from[static_cast<std::size_t>(axis)]);
  if (call.on_host()) {
    const Dims strides = strides_of(from);
    return call.set(0, picked(call.host(0), dims, [&](const Dims& position) {
                      std::int64_t place = 0;
                      for (std::size_t i = 0; i < order.size(); ++i)
                        place += position[i] * strides[static_cast<std::size_t>(order[i])];
                      return static_cast<std::size_t>(place);
                    }));
  }
  if (elements_of(dims) == 0) return call.set_empty(0, call.type(0), std::move(dims));
  call.set(0, transposed(call.value(0), order), call.type(0));
}

void expand_to(Call& call, Dims dims) {
  if (call.on_host(dims)) {
    const auto places = broadcast_places(call.dims(0), dims);
    HostTensor result(call.type(0), std::move(dims));
    for (std::size_t i = 0; i < places.size(); ++i) result.copy(i, call.host(0), places[i]);
    return call.set(0, std::move(result));
  }
  if (elements_of(dims) == 0) return call.set_empty(0, call.type(0), std::move(dims));
  call.set(0, expanded(call.value(0), dims), call.type(0));
}

void expand_of(Call& call) { expand_to(call, broadcast_dims(call.dims(0), call.integers(1))); }

void tile_of(Call& call) {
  const Dims& from = call.dims(0);
  Dims repeats(from.size(), 1);
  if (call.opset() < 6) {
    repeats.at(axis_of(call.integer(2), from.size())) = call.integer(1);
  } else {
    repeats = call.integers(1);
  }
  CONCORD_CHECK(repeats.size() == from.size() && std::ranges::all_of(repeats, [](std::int64_t r) { return r >= 0; }),
                ShapeError, "repeats [{}] for [{}]", fmt::join(repeats, ", "), fmt::join(from, ", "));
  Dims dims;
  for (std::size_t i = 0; i < from.size(); ++i) {
    CONCORD_CHECK(from[i] == 0 || repeats[i] <= INT64_MAX / from[i], ShapeError, "repeats [{}] for [{}]",
                  fmt::join(repeats, ", "), fmt::join(from, ", "));
    dims.push_back(from[i] * repeats[i]);
  }
  if (call.on_host(dims)) {
    const Dims strides = strides_of(from);
    return call.set(0, picked(call.host(0), dims, [&](const Dims& position) {
                      std::int64_t place = 0;
                      for (std::size_t i = 0; i < from.size(); ++i) place += position[i] % from[i] * strides[i];
                      return static_cast<std::size_t>(place);
                    }));
  }
  if (elements_of(dims) == 0) return call.set_empty(0, call.type(0), std::move(dims));
  // An axis of size 1 is broadcast, others are repeated.
  Dims wide = from, rest(from.size(), 1);
  for (std::size_t i = 0; i < from.size(); ++i) (from[i] == 1 ? wide[i] : rest[i]) = repeats[i];
  const Value x = expanded(call.value(0), wide);
  call.set(0, through_f32(x, [&](const Value& numbers) { return tile(numbers, rest); }), call.type(0));
}

void concat_of(Call& call) {
  CONCORD_CHECK(call.inputs() > 0, FormatError, "it has no input");
  const std::int64_t given = call.opset() < 4 ? call.integer("axis", 1) : call.required_integer("axis");
  const std::size_t axis = axis_of(given, call.rank(0));
  Dims dims = call.dims(0);
  dims[axis] = 0;
  for (std::size_t k = 0; k < call.inputs(); ++k) {
    Dims own = call.dims(k);
    CONCORD_CHECK(own.size() == dims.size(), ShapeError, "inputs of {} and {} dimensions", dims.size(), own.size());
    dims[axis] += own[axis];
    own[axis] = dims[axis];
    CONCORD_CHECK(own == dims, ShapeError, "input {} of [{}] does not fit the others", k,
                  fmt::join(call.dims(k), ", "));
  }
  if (call.on_host(dims)) {
    HostTensor result(call.type(0), dims);
    const Dims strides = strides_of(dims);
    std::int64_t start = 0;
    for (std::size_t k = 0; k < call.inputs(); ++k) {
      std::size_t next = 0;
      each_position(call.dims(k), [&](const Dims& position) {
        std::int64_t place = start * strides[axis];
        for (std::size_t i = 0; i < position.size(); ++i) place += position[i] * strides[i];
        result.copy(static_cast<std::size_t>(place), call.host(k), next++);
      });
      start += call.dims(k)[axis];
    }
    return call.set(0, std::move(result));
  }
  std::vector<Value> values;
  for (std::size_t k = 0; k < call.inputs(); ++k) {
    if (!call.is_empty(k)) values.push_back(call.value(k));
  }
  if (values.empty()) return call.set_empty(0, call.type(0), std::move(dims));
  call.set(0, concat(std::move(values), static_cast<std::int64_t>(axis)), call.type(0));
}

void shape_of(Call& call) {
  const auto rank = static_cast<std::int64_t>(call.rank(0));
  const auto within = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const std::int64_t start = within(call.integer("start", 0)), end = within(call.integer("end", rank));
  const Dims& dims = call.dims(0);
  Dims part;
  if (start < end) part.assign(dims.begin() + start, dims.begin() + end);
  const auto count = static_cast<std::int64_t>(part.size());
  call.set(0, HostTensor::of({count}, std::move(part)));
}

void size_of_all(Call& call) { call.set(0, HostTensor::of({}, {elements_of(call.dims(0))})); }

// (N, C, H, W) split into blocks of `block` rows and columns.
void depth_to_space(Call& call) {
  const std::int64_t block = call.required_integer("blocksize");
  const Dims& d = call.dims(0);
  CONCORD_CHECK(d.size() == 4 && block > 0 && block <= d[1] && d[1] % block == 0 && d[1] / block % block == 0,
                ShapeError, "blocks of {} in [{}]", block, fmt::join(d, ", "));
  const std::int64_t channels = d[1] / block / block;
  const bool by_column = call.text("mode", "DCR") == "CRD";
  const Value x = call.value(0);
  const Value parts = by_column ? reshape(x, {d[0], channels, block, block, d[2], d[3]})
                                : reshape(x, {d[0], block, block, channels, d[2], d[3]});
  const Value ordered = by_column ? transpose(parts, {0, 1, 4, 2, 5, 3}) : transpose(parts, {0, 3, 4, 1, 5, 2});
  call.set(0, reshape(ordered, {d[0], channels, d[2] * block, d[3] * block}), call.type(0));
}

void space_to_depth(Call& call) {
  const std::int64_t block = call.required_integer("blocksize");
  const Dims& d = call.dims(0);
  CONCORD_CHECK(d.size() == 4 && block > 0 && block <= d[2] && block <= d[3] && d[2] % block == 0 && d[3] % block == 0,
                ShapeError, "blocks of {} in [{}]", block, fmt::join(d, ", "));
  const Value parts = reshape(call.value(0), {d[0], d[1], d[2] / block, block, d[3] / block, block});
  call.set(0, reshape(transpose(parts, {0, 3, 5, 1, 2, 4}), {d[0], d[1] * block * block, d[2] / block, d[3] / block}),
           call.type(0));
}

}  // namespace

void add_views(Table& table) {
  table.add("Reshape", {.run = reshape_of, .host = true});
  table.add("Reshape", {.since = 5, .run = reshape_of, .known = {1}, .host = true});
  table.add("Flatten", {.run = flatten_of, .host = true});
  table.add("Squeeze", {.run = squeeze_of, .host = true});
  table.add("Squeeze", {.since = 13, .run = squeeze_of, .known = {1}, .host = true});
  table.add("Unsqueeze", {.run = unsqueeze_of, .host = true});
  table.add("Unsqueeze", {.since = 13, .run = unsqueeze_of, .known = {1}, .host = true});
  table.add("Identity", {.run = identity});
  table.add("Transpose", {.run = transpose_of, .host = true});
  table.add("Expand", {.since = 8, .run = expand_of, .known = {1}, .host = true});
  table.add("Tile", {.run = tile_of, .known = {1, 2}, .host = true});
  table.add("Concat", {.run = concat_of, .host = true});
  table.add("Shape", {.run = shape_of});
  table.add("Size", {.run = size_of_all});
  table.add("DepthToSpace", {.run = depth_to_space});
  table.add("SpaceToDepth", {.run = space_to_depth});
}

}  // namespace concord::onnx
