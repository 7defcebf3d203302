// The programs of an epoch, and what can be done when they do not fit on the device.
#include <algorithm>

#include "concord/compile/memory_need.hpp"
#include "concord/core/check.hpp"
#include "concord/train/state.hpp"

namespace concord {

TrainerState::EpochPrograms TrainerState::epoch_programs(train::ProgramKey key, const train::EpochPlan& plan,
                                                         int classes) {
  EpochPrograms made;
  key.plan = plan.full;
  try {
    made.full = program(key, classes);
    if (plan.last.size > 0) {
      train::ProgramKey last = key;
      last.plan = plan.last;
      made.last = program(last, classes);
    }
    return made;
  } catch (const OutOfMemory& error) {
    made = {};
    programs.drop(key);
    throw OutOfMemory(fmt::format("{}. {}", error.what(), advice_on_batch(key, plan.samples, classes)));
  }
}

std::string TrainerState::advice_on_batch(train::ProgramKey key, std::int64_t samples, int classes) const {
  const auto need_of_one = [&](std::int64_t batch, std::int64_t rows, MemoryDetail detail) {
    key.plan = {batch, rows};
    const train::Traced traced = train::trace(recipe, key, classes);
    const Value output = traced.loss ? traced.loss : traced.output;
    return memory_need(*traced.graph, {&output, 1}, *variables, detail);
  };
  const bool ordered = key.plan.rows > 0;
  const auto need = [&](std::int64_t batch, MemoryDetail detail) -> std::size_t {
    try {
      const std::int64_t last = samples % batch;
      std::size_t bytes = need_of_one(batch, ordered ? samples / batch : 0, detail).total();
      if (last > 0) bytes += need_of_one(last, 0, detail).arena;
      return bytes;
    } catch (const OutOfMemory&) {
    } catch (const ShapeError&) {  // batch norm may refuse a single sample
    }
    return SIZE_MAX;
  };
  const std::size_t memory = device->info().memory;
  const std::size_t available = memory - std::min<std::size_t>(device->allocated(), memory);
  std::int64_t batch = key.plan.size;
  if (need(batch, MemoryDetail::kernels) <= available) return "Other programs hold a part of the device's memory";
  // Layouts and workspaces are only known once kernels are prepared, so what they add is first taken to grow as it did
  // for the batch looked at last.
  double added = 1;
  while (true) {
    batch = largest_batch(batch, available, [&](std::int64_t b) {
      const std::size_t values = need(b, MemoryDetail::values);
      return values == SIZE_MAX ? values : static_cast<std::size_t>(added * static_cast<double>(values));
    });
    if (batch == 0) return "Not even a batch of one sample fits";
    const std::size_t bytes = need(batch, MemoryDetail::kernels);
    if (bytes <= available) return fmt::format("The largest batch that fits is {}", batch);
    if (bytes != SIZE_MAX) {
      added = static_cast<double>(bytes) / static_cast<double>(need(batch, MemoryDetail::values));
    }
  }
}

}  // namespace concord
