// Rows of a table by index, and the sum of rows by index (ops/gather.hpp).
#include "concord/ops/gather.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

Values gathered(const ReplayedNode& node) {
  const Values table = doubles(node.inputs[0]), indices = doubles(node.inputs[1]);
  const double outside = node.inputs[0].dtype() == DType::f32 ? NAN : 0;
  const auto rows = static_cast<double>(node.inputs[0].shape().dims()[0]);
  Values result = zeros(node.results[0]);
  const std::size_t length = result.size() / std::max<std::size_t>(indices.size(), 1);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const bool inside = indices[i] >= 0 && indices[i] < rows;
    for (std::size_t k = 0; k < length; ++k) {
      result[i * length + k] = inside ? table[static_cast<std::size_t>(indices[i]) * length + k] : outside;
    }
  }
  return result;
}

Values scattered(const ops::ScatterAdd& op, const ReplayedNode& node) {
  constexpr std::size_t kBase = ops::ScatterAdd::kBase;
  const Values src = doubles(node.inputs[0]), indices = doubles(node.inputs[1]);
  Values result = node.inputs.size() > kBase ? doubles(node.inputs[kBase]) : zeros(node.results[0]);
  const std::size_t length = src.size() / std::max<std::size_t>(indices.size(), 1);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto row = static_cast<std::int64_t>(indices[i]);
    if (row < 0 || row >= op.rows() || row == op.padding()) continue;
    for (std::size_t k = 0; k < length; ++k) result[static_cast<std::size_t>(row) * length + k] += src[i * length + k];
  }
  return result;
}

}  // namespace

Results gather(const ReplayedNode& node) {
  if (dynamic_cast<const ops::Gather*>(node.op) != nullptr) return {{gathered(node)}};
  if (const auto* op = dynamic_cast<const ops::ScatterAdd*>(node.op)) return {{scattered(*op, node)}};
  return {};
}

}  // namespace concord::float64
