// Whether all elements are finite, as the operator says it.
#include "concord/ops/all_finite.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {

Results all_finite(const ReplayedNode& node) {
  const auto* with_numbers = dynamic_cast<const ops::AllFiniteWithNumbers*>(node.op);
  if (with_numbers == nullptr && dynamic_cast<const ops::AllFinite*>(node.op) == nullptr) return {};
  const std::size_t tensors = with_numbers != nullptr ? with_numbers->tensors() : node.inputs.size();
  const bool all = std::ranges::all_of(std::span(node.inputs).first(tensors), [](const Tensor& tensor) {
    return std::ranges::all_of(tensor.values<float>(), [](float x) { return std::isfinite(x); });
  });
  std::vector<Values> results{{all ? 1.0 : 0.0}};
  if (with_numbers == nullptr) return results;
  std::vector<Numbers> operands{{results.front(), Shape{}}};
  for (const Tensor& other : std::span(node.inputs).subspan(tensors)) {
    operands.push_back({doubles(other), other.shape()});
  }
  for (Values& numbers : values_of(with_numbers->formulas().expression(), operands, Shape{})) {
    results.push_back(std::move(numbers));
  }
  return results;
}

}  // namespace concord::float64
