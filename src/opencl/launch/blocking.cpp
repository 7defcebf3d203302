// Blocking of elementwise kernels.
#include "concord/opencl/launch/blocking.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace concord::opencl {

std::string Blocking::definition() const { return fmt::format("PER_ITEM={}", per_item); }

void Blocking::apply(Stage& stage) const {
  stage.global = {groups * local, 1, 1};
  stage.local = {local, 1, 1};
}

Blocking blocking_of(const Limits& limits, std::int64_t elements, std::size_t gpu_per_item) {
  const auto n = static_cast<std::size_t>(elements);
  // A CPU runs the items of a group in a loop that its compiler vectorises. A GPU needs several reads in flight for
  // each item, and small ranges spread over all of its compute units.
  const std::size_t per_item = limits.is_cpu ? 1 : gpu_per_item;
  const std::size_t wanted = limits.is_cpu ? 1024 : n < std::size_t{limits.compute_units} * per_item * 1024 ? 64 : 256;
  const std::size_t local = std::min(wanted, limits.max_work_group);
  return {per_item, local, (n + per_item * local - 1) / (per_item * local)};
}

void Chunking::apply(Stage& stage) const {
  stage.global = {items, 1, 1};
  stage.local = {1, 1, 1};
}

Chunking chunking_of(const Limits& limits, std::int64_t elements) {
  // A few chunks per compute unit balance the load; a short chunk costs more to schedule than to compute.
  constexpr std::int64_t kChunksPerUnit = 4, kShortest = 2048;
  const std::int64_t chunks = std::int64_t{limits.compute_units} * kChunksPerUnit;
  const std::int64_t chunk = std::max((elements + chunks - 1) / chunks, kShortest);
  return {chunk, static_cast<std::size_t>((elements + chunk - 1) / chunk)};
}

}  // namespace concord::opencl
