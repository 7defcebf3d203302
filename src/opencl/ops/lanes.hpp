// The number of work-items per row in the kernels of lanes.h. Used by reduce, softmax and cross_entropy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

struct Lanes {
  std::size_t lanes = 1, rows = 1;  // items per row, rows per work-group
  bool rows_adjacent = false;

  [[nodiscard]] std::vector<std::string> definitions() const;
  /// Sizes of a launch over `count` rows.
  void cover(Stage& stage, std::int64_t count) const;
};

/// For rows of `length` elements, `inner` elements apart, in work-groups of at most `most` items. One item a row on
/// CPUs.
[[nodiscard]] Lanes lanes_for(const Context& context, std::int64_t length, std::int64_t inner, std::size_t most = 256);

}  // namespace concord::opencl
