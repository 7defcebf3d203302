// Blocking of elementwise kernels.
#include "concord/opencl/blocking.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace concord::opencl {

std::string Blocking::definition() const { return fmt::format("PER_ITEM={}", per_item); }

void Blocking::apply(Stage& stage) const {
  stage.global = {groups * local, 1, 1};
  stage.local = {local, 1, 1};
}

Blocking blocking_of(const Limits& limits, std::int64_t elements) {
  const auto n = static_cast<std::size_t>(elements);
  // A CPU walks through the items of a group in a loop that its compiler vectorises; a GPU wants several reads in
  // flight for each item, and small ranges spread over all of its units.
  const std::size_t per_item = limits.is_cpu ? 1 : 4;
  const std::size_t wanted = limits.is_cpu ? 1024 : n < std::size_t{limits.compute_units} * 4096 ? 64 : 256;
  const std::size_t local = std::min(wanted, limits.max_work_group);
  return {per_item, local, (n + per_item * local - 1) / (per_item * local)};
}

}  // namespace concord::opencl
