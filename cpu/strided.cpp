// Merging and permuting dimensions.
#include "strided.hpp"

namespace concord::cpu {

StridedView collapse(const StridedView& view) {
  StridedView result;
  result.strides.resize(view.strides.size());
  for (std::size_t d = 0; d < view.dims.size(); ++d) {
    if (view.dims[d] == 1) continue;
    bool merge = !result.dims.empty();
    for (std::size_t k = 0; k < view.strides.size() && merge; ++k) {
      merge = result.strides[k].back() == view.strides[k][d] * view.dims[d];
    }
    if (merge) {
      result.dims.back() *= view.dims[d];
    } else {
      result.dims.push_back(view.dims[d]);
    }
    for (std::size_t k = 0; k < view.strides.size(); ++k) {
      if (merge) {
        result.strides[k].back() = view.strides[k][d];
      } else {
        result.strides[k].push_back(view.strides[k][d]);
      }
    }
  }
  if (result.dims.empty()) {
    result.dims.push_back(1);
    for (auto& strides : result.strides) strides.push_back(0);
  }
  return result;
}

StridedView permute(const StridedView& view, const std::vector<std::size_t>& order) {
  StridedView result;
  result.strides.resize(view.strides.size());
  for (const std::size_t d : order) {
    result.dims.push_back(view.dims[d]);
    for (std::size_t k = 0; k < view.strides.size(); ++k) result.strides[k].push_back(view.strides[k][d]);
  }
  return result;
}

}  // namespace concord::cpu
