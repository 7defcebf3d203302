// How a long k is cut, so that more of a device works on a product.
#pragma once

#include <algorithm>
#include <cstdint>

#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

/// A cut of k: `parts` of `length` values each, the last one shorter.
struct Split {
  std::int64_t parts = 1, length = 0;
};
/// At most `parts` parts whose length is a multiple of `unit`.
[[nodiscard]] inline Split split_of(std::int64_t k, std::int64_t parts, std::int64_t unit) {
  const std::int64_t length = std::max(unit, divide_up(divide_up(k, std::max<std::int64_t>(parts, 1)), unit) * unit);
  return {std::max<std::int64_t>(1, divide_up(k, length)), length};
}

}  // namespace concord::opencl
