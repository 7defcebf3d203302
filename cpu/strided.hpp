// Loops over tensors with different storage: dimensions are merged if every operand allows it. Used by pointwise,
// reduce and copy.
#pragma once

#include <cstdint>
#include <vector>

namespace concord::cpu {

/// Dimensions, outermost first, and the strides of several operands along them (strides[operand][dimension]).
struct StridedView {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides;
};

/// The same elements with fewer dimensions: those of size 1 dropped, neighbours merged where all strides allow.
/// At least one dimension is left.
[[nodiscard]] StridedView collapse(const StridedView& view);

/// The view with its dimensions in another order.
[[nodiscard]] StridedView permute(const StridedView& view, const std::vector<std::size_t>& order);

/// Offset of the element with row-major number `index` of `dims` under `strides`.
[[nodiscard]] inline std::int64_t offset_of(std::int64_t index, const std::vector<std::int64_t>& dims,
                                            const std::vector<std::int64_t>& strides, std::size_t rank) {
  std::int64_t offset = 0;
  for (std::size_t d = rank; d-- > 0;) {
    offset += index % dims[d] * strides[d];
    index /= dims[d];
  }
  return offset;
}

}  // namespace concord::cpu
