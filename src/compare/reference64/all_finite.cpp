// Whether all elements are finite, as the operator says it.
#include "concord/ops/all_finite.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {

Results all_finite(const ReplayedNode& node) {
  if (dynamic_cast<const ops::AllFinite*>(node.op) == nullptr) return {};
  const bool all = std::ranges::all_of(node.inputs, [](const Tensor& tensor) {
    return std::ranges::all_of(tensor.values<float>(), [](float x) { return std::isfinite(x); });
  });
  return {{Values{all ? 1.0 : 0.0}}};
}

}  // namespace concord::float64
