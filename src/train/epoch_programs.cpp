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
  } catch (const Error&) {
    made = {};
    programs.drop(key);
    rethrow_with_advice(key, plan.samples, classes);
  }
}

void TrainerState::rethrow_with_advice(train::ProgramKey key, std::int64_t samples, int classes) const {
  const auto need_of_one = [&](std::int64_t batch, std::int64_t rows, MemoryDetail detail) {
    key.plan = {batch, rows};
    const train::Traced traced = train::trace(recipe, key, classes);
    const Value output = traced.loss ? traced.loss : traced.output;
    return memory_need(*traced.graph, {&output, 1}, *variables, detail, options_of(key.purpose));
  };
  const bool ordered = key.plan.rows > 0;
  rethrow_with_advice_on_batch(key.plan.size, *device, [&](std::int64_t batch, MemoryDetail detail) {
    const std::int64_t last = samples % batch;
    std::size_t bytes = need_of_one(batch, ordered ? samples / batch : 0, detail).total();
    if (last > 0) bytes += need_of_one(last, 0, detail).arena;
    return bytes;
  });
}

}  // namespace concord
