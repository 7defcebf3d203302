// The passes of compile() up to the memory plan.
#include "concord/compile/memory_need.hpp"

#include <numeric>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/core/error.hpp"

namespace concord {

MemoryNeed memory_need(const Graph& graph, std::span<const Value> outputs, const Variables& variables,
                       MemoryDetail detail, const CompileOptions& options) {
  Device& device = variables.device();
  Lowered lowered = lower_and_fuse(graph, outputs, device, options);
  if (detail == MemoryDetail::kernels) choose_layouts(lowered, device);
  if (!options.keep_all && !options.keep_fused && detail == MemoryDetail::kernels) find_settled(lowered);
  const MemoryPlan plan = plan_memory(lowered, options.keep_all || options.keep_fused);
  const Arena arena = place(lowered, plan, device.info());
  return {std::accumulate(arena.slabs.begin(), arena.slabs.end(), std::size_t{0}), missing_bytes(lowered, variables)};
}

std::int64_t largest_batch(std::int64_t failed, std::size_t available,
                           const std::function<std::size_t(std::int64_t batch)>& need) {
  std::int64_t fits = 0;
  while (failed - fits > 1) {
    const std::int64_t middle = fits + (failed - fits) / 2;
    std::size_t bytes = SIZE_MAX;
    try {
      bytes = need(middle);
    } catch (const OutOfMemory&) {
    }
    (bytes <= available ? fits : failed) = middle;
  }
  return fits;
}

}  // namespace concord
