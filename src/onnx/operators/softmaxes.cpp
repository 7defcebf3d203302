// Softmax, LogSoftmax and Hardmax of ONNX. Before version 13 they see a matrix: the axes from `axis` on are one.
#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::onnx {
namespace {

Value hardmax(Value x, std::int64_t axis) {
  const Value largest = argmax(x, axis, true);
  const auto from_last = static_cast<int>(x.shape().rank() - 1 - x.shape().index_of(axis));
  return pointwise("hardmax", {largest, x}, scalar::equal(scalar::coordinate(from_last), scalar::input(0)));
}

template <Value (*function)(Value, std::int64_t)>
void along_axis(Call& call) {
  if (call.is_empty(0)) return call.set_empty(0, call.type(0), call.dims(0));
  const Value x = call.number_value(0);
  const bool is_matrix = call.opset() < 13;
  const std::int64_t axis = call.integer("axis", is_matrix ? 1 : -1);
  if (!is_matrix || call.rank(0) == 0) return call.set(0, function(x, axis), call.type(0));
  const auto rank = static_cast<std::int64_t>(call.rank(0));
  CONCORD_CHECK(axis >= -rank && axis <= rank, ShapeError, "axis {} of {} dimensions", axis, rank);
  if (axis == -1 || axis == rank - 1) return call.set(0, function(x, -1), call.type(0));
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < (axis < 0 ? axis + rank : axis); ++i) rows *= call.dims(0)[static_cast<std::size_t>(i)];
  call.set(0, reshape(function(reshape(x, {rows, -1}), 1), x.shape()), call.type(0));
}

}  // namespace

void add_softmaxes(Table& table) {
  table.add("Softmax", {.run = along_axis<softmax>});
  table.add("LogSoftmax", {.run = along_axis<log_softmax>});
  table.add("Hardmax", {.run = along_axis<hardmax>});
}

}  // namespace concord::onnx
