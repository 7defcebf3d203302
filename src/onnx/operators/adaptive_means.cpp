// Adaptive pooling as products: see adaptive_means.hpp.
#include "concord/onnx/operators/adaptive_means.hpp"

#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pool.hpp"

namespace concord::onnx {
namespace {

/// Whether column j of a constant matrix (from, to) has the mean of the rows j·from/to up to (j + 1)·from/to, rounded
/// down and up.
bool takes_means(const Value& matrix) {
  const VariablePtr& variable = matrix.node().variable;
  if (!variable || matrix.shape().rank() != 2 || variable->value.elements() != matrix.shape().elements()) return false;
  const std::int64_t from = matrix.shape()[0], to = matrix.shape()[1];
  const auto numbers = std::as_const(variable->value).values<float>();
  for (std::int64_t j = 0; j < to; ++j) {
    const std::int64_t first = j * from / to, last = ((j + 1) * from + to - 1) / to;
    for (std::int64_t i = 0; i < from; ++i) {
      const float share = i < first || i >= last ? 0 : 1.0F / static_cast<float>(last - first);
      if (numbers[static_cast<std::size_t>(i * to + j)] != share) return false;
    }
  }
  return true;
}

/// The source of a transposition of H and W; else empty.
Value before_turn(const Value& value) {
  const auto* op = dynamic_cast<const ops::Transpose*>(value.node().op.get());
  const bool is_turn = op != nullptr && op->order() == std::vector<std::size_t>{0, 1, 3, 2};
  return is_turn ? value.node().inputs[0] : Value{};
}

}  // namespace

Value adaptive_mean_of(const Call& call, const Value& a, const Value& b) {
  if (call.graph().training() || a.shape().rank() != 4 || call.tracer().readers_of(a) > 1) return {};
  const Value along_height = before_turn(a);  // (N, C, W, height)
  if (!along_height || call.tracer().readers_of(along_height) > 1 || !takes_means(b)) return {};
  const auto* product = dynamic_cast<const ops::Matmul*>(along_height.node().op.get());
  if (product == nullptr || product->transpose_b()) return {};
  const Value image = along_height.node().inputs[0], rows = along_height.node().inputs[1];
  const Value x = product->transpose_a() ? image : before_turn(image);
  if (!x || x.shape().rank() != 4 || !takes_means(rows)) return {};
  const std::vector<std::int64_t> sizes{rows.shape()[1], b.shape()[1]};
  return adaptive_avg_pool(x, sizes);
}

}  // namespace concord::onnx
