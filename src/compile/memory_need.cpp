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
  const Section section = section_of(graph, outputs, options);
  Lowered lowered = lower_and_fuse(graph, section, device, options);
  const bool retains_all = options.retain != Retain::outputs;
  if (detail == MemoryDetail::kernels) choose_layouts(lowered, device, options.precision, retains_all);
  if (!retains_all && detail == MemoryDetail::kernels) group_launches(lowered, device, section, options);
  if (options.memory_budget > 0) recompute(lowered, options.memory_budget, device.info());
  const MemoryPlan plan = plan_memory(lowered, retains_all);
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

namespace {

struct Advice {
  std::int64_t largest = 0;  // batch that is possible
  std::string text;
};

std::size_t bytes_of(const BatchNeed& need, std::int64_t batch, MemoryDetail detail) {
  try {
    return need(batch, detail);
  } catch (const OutOfMemory&) {
  } catch (const NotSupported&) {
  } catch (const ShapeError&) {
  }
  return SIZE_MAX;
}

Advice advice_on_batch(std::int64_t failed, const Device& device, const BatchNeed& need) {
  const std::size_t memory = device.info().memory;
  const std::size_t available = memory - std::min<std::size_t>(device.allocated(), memory);
  const auto largest = [](std::int64_t batch) -> Advice {
    if (batch == 0) return {0, "Not even a batch of one sample fits"};
    return {batch, fmt::format("The largest batch that fits is {}", batch)};
  };
  const auto with_kernels = [&](std::int64_t batch) { return bytes_of(need, batch, MemoryDetail::kernels); };
  if (with_kernels(failed) <= available) {
    return {failed, "Other programs use a part of the device's memory; close them, or use a smaller batch"};
  }
  // Layouts and workspaces are known only after kernels are prepared. The first estimate assumes that their memory
  // grows in proportion to the batch that was measured last.
  double added = 1;
  for (std::int64_t batch = failed;;) {
    batch = largest_batch(batch, available, [&](std::int64_t b) {
      const std::size_t values = bytes_of(need, b, MemoryDetail::values);
      return values == SIZE_MAX ? values : static_cast<std::size_t>(added * static_cast<double>(values));
    });
    if (batch == 0) return largest(0);
    const std::size_t bytes = with_kernels(batch);
    if (bytes <= available) return largest(batch);
    // A limit of kernels or of one allocation does not show how far the batch exceeds it.
    if (bytes == SIZE_MAX) return largest(largest_batch(batch, available, with_kernels));
    added = static_cast<double>(bytes) / static_cast<double>(bytes_of(need, batch, MemoryDetail::values));
  }
}

}  // namespace

void rethrow_with_advice_on_batch(std::int64_t failed, const Device& device, const BatchNeed& need) {
  try {
    throw;
  } catch (const MemoryBudgetError& error) {
    throw MemoryBudgetError(fmt::format("{}. {}", error.what(), advice_on_batch(failed, device, need).text),
                            error.least());
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format("{}. {}", error.what(), advice_on_batch(failed, device, need).text));
  } catch (const NotSupported& error) {
    const Advice advice = advice_on_batch(failed, device, need);
    if (advice.largest == 0 || advice.largest == failed) throw;  // it is not for the batch
    throw NotSupported(fmt::format("{}. {}", error.what(), advice.text));
  }
}

}  // namespace concord
