// Writing by index: ScatterElements and ScatterND of ONNX.
#include <fmt/ranges.h>

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/indexing.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"

namespace concord::onnx {
namespace {

constexpr std::int64_t kMostUnrolled = 256;  // updates that are applied one after another

// The formula that joins an update with what was there.
Scalar joined(const std::string& reduction, const Scalar& before, const Scalar& update) {
  if (reduction == "mul") return before * update;
  if (reduction == "max") return scalar::max(before, update);
  if (reduction == "min") return scalar::min(before, update);
  throw NotSupported(fmt::format("the reduction '{}' is unknown", reduction));
}

// What is not written keeps its value; where two updates meet, ONNX defines nothing.
Value replaced(const Value& data, const Value& sums, const Value& counts) {
  return pointwise("scatter", {data, sums, counts},
                   scalar::select(scalar::input(2), scalar::input(1) / scalar::input(2), scalar::input(0)));
}

void scatter_elements(Call& call) {
  const std::size_t axis = axis_of(call.integer("axis", 0), call.rank(0));
  const std::string reduction = call.text("reduction", "none");
  const Dims& dims = call.dims(0);
  const Dims& places = call.dims(1);
  const std::int64_t size = dims[axis];
  const Value data = call.number_value(0), updates = call.number_value(2), indices = from_start(call.value(1), size);
  Dims rest(dims.size(), 0), none(dims.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) rest[i] = i == axis ? 0 : dims[i] - places[i];
  const bool is_whole = rest == none;
  if (reduction == "none" || reduction == "add") {
    const auto along = static_cast<std::int64_t>(axis);
    const auto enlarged = [&](const Value& x) { return is_whole ? x : pad(x, none, rest); };
    const Value sums = enlarged(scatter_add_along(updates, indices, along, size));
    if (reduction == "add") return call.set(0, data + sums, call.type(0));
    const Value ones = full(call.graph(), updates.shape(), 1);
    return call.set(0, replaced(data, sums, enlarged(scatter_add_along(ones, indices, along, size))), call.type(0));
  }
  CONCORD_CHECK(is_whole, NotSupported,
                "the reduction '{}' with indices [{}] that do not have the sizes of the data [{}] off the axis {}",
                reduction, fmt::join(places, ", "), fmt::join(dims, ", "), axis);
  CONCORD_CHECK(places[axis] <= kMostUnrolled, NotSupported,
                "{} updates along an axis are too many for the reduction '{}'", places[axis], reduction);
  Value y = data;
  const Scalar place = scalar::coordinate(static_cast<int>(dims.size() - 1 - axis));
  for (std::int64_t k = 0; k < places[axis]; ++k) {
    const std::vector<Value> operands{y, sliced_along(indices, axis, k, 1), sliced_along(updates, axis, k, 1)};
    y = pointwise("scatter", operands,
                  scalar::select(scalar::equal(place, scalar::input(1)),
                                 joined(reduction, scalar::input(0), scalar::input(2)), scalar::input(0)));
  }
  call.set(0, y, call.type(0));
}

void scatter_nd(Call& call) {
  const std::string reduction = call.text("reduction", "none");
  const Dims& dims = call.dims(0);
  const Dims& places = call.dims(1);
  CONCORD_CHECK(!places.empty() && places.back() <= static_cast<std::int64_t>(dims.size()), ShapeError,
                "indices without a number of axes");
  const auto depth = static_cast<std::ptrdiff_t>(places.back());
  const Dims indexed(dims.begin(), dims.begin() + depth), rest(dims.begin() + depth, dims.end());
  const std::int64_t rows = elements_of(indexed), width = elements_of(rest),
                     count = elements_of(places) / std::max<std::int64_t>(places.back(), 1);
  if (count == 0) return call.set(0, call.operand(0));
  const Value data = reshape(call.number_value(0), {rows, width}),
              updates = reshape(call.number_value(2), {count, width});
  const Value indices = reshape(row_major_places(call.value(1), indexed), {count});
  Value y;
  if (reduction == "none" || reduction == "add") {
    const Value sums = scatter_add(updates, indices, rows);
    y = reduction == "add"
            ? data + sums
            : replaced(data, sums, reshape(scatter_add(full(call.graph(), Shape{count}, 1), indices, rows), {rows, 1}));
  } else {
    CONCORD_CHECK(count <= kMostUnrolled, NotSupported, "{} updates are too many for the reduction '{}'", count,
                  reduction);
    y = data;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::vector<Value> operands{y, reshape(slice(indices, 0, k, k + 1), {1, 1}), slice(updates, 0, k, k + 1)};
      y = pointwise("scatter", operands,
                    scalar::select(scalar::equal(scalar::coordinate(1), scalar::input(1)),
                                   joined(reduction, scalar::input(0), scalar::input(2)), scalar::input(0)));
    }
  }
  call.set(0, reshape(y, Shape(dims)), call.type(0));
}

}  // namespace

void add_scatters(Table& table) {
  table.add("Scatter", {.since = 9, .run = scatter_elements});
  table.add("ScatterElements", {.since = 11, .run = scatter_elements});
  table.add("ScatterND", {.since = 11, .run = scatter_nd});
}

}  // namespace concord::onnx
