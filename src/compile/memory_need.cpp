// The passes of compile() up to the memory plan.
#include "concord/compile/memory_need.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/compile/recompute.hpp"
#include "concord/core/error.hpp"

namespace concord {

MemoryNeed memory_need(const Graph& graph, std::span<const Value> outputs, const Variables& variables,
                       MemoryDetail detail, const CompileOptions& options) {
  Device& device = variables.device();
  Lowered lowered = lower_and_fuse(graph, outputs, device, options);
  if (detail == MemoryDetail::kernels) choose_layouts(lowered, device, options.precision);
  if (!options.keep_all && !options.keep_fused && detail == MemoryDetail::kernels) find_settled(lowered);
  if (options.memory_budget > 0) recompute(lowered, options.memory_budget, device.info());
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

std::string advice_on_batch(std::int64_t failed, const Device& device,
                            const std::function<std::size_t(std::int64_t, MemoryDetail)>& need) {
  const auto bytes_of = [&](std::int64_t batch, MemoryDetail detail) -> std::size_t {
    try {
      return need(batch, detail);
    } catch (const OutOfMemory&) {
    } catch (const ShapeError&) {
    }
    return SIZE_MAX;
  };
  const std::size_t memory = device.info().memory;
  const std::size_t available = memory - std::min<std::size_t>(device.allocated(), memory);
  if (bytes_of(failed, MemoryDetail::kernels) <= available) {
    return "Other programs hold a part of the device's memory; end them, or take a smaller batch";
  }
  // Layouts and workspaces are only known once kernels are prepared, so what they add is first taken to grow as it did
  // for the batch looked at last.
  double added = 1;
  for (std::int64_t batch = failed;;) {
    batch = largest_batch(batch, available, [&](std::int64_t b) {
      const std::size_t values = bytes_of(b, MemoryDetail::values);
      return values == SIZE_MAX ? values : static_cast<std::size_t>(added * static_cast<double>(values));
    });
    if (batch == 0) return "Not even a batch of one sample fits";
    const std::size_t bytes = bytes_of(batch, MemoryDetail::kernels);
    if (bytes <= available) return fmt::format("The largest batch that fits is {}", batch);
    if (bytes != SIZE_MAX) {
      added = static_cast<double>(bytes) / static_cast<double>(bytes_of(batch, MemoryDetail::values));
    }
  }
}

}  // namespace concord
