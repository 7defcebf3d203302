// The rate of the last step before a stop, as the checkpoint and as this schedule have it.
#include "concord/train/resumed_rates.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "concord/core/log.hpp"

namespace concord::train {

void ResumedRates::compare(const Place& at, const EpochPlan& plan, double base, const optim::Schedule& schedule) {
  const auto saved = std::exchange(rates_, {});
  if (!saved.contains("rate") || at.step == 0) return;
  const std::string& kind = schedule.description();
  if (saved.contains("kind") && saved.at("kind") != kind) {
    log(LogLevel::warning, fmt::format("{}: the training had the schedule {}; this one has {} (--schedule)",
                                       checkpoint_.string(), saved.at("kind"), kind));
  }
  const std::int64_t epoch = at.epoch - (at.position > 0 ? 0 : 1);
  std::span<const double> earlier = at.losses;  // at that step
  if (at.position == 0 && !earlier.empty()) earlier = earlier.first(earlier.size() - 1);
  const std::int64_t batch = at.position > 0 ? at.position / at.batch : 0;  // an epoch's last makes an update
  const std::int64_t step = at.updates - (batch % at.accumulate == 0 ? 1 : 0);
  const std::int64_t batches = at.position > 0 ? at.batches_done(plan) : plan.batches();
  const optim::Progress progress{.step = step,
                                 .epoch = epoch,
                                 .losses = earlier,
                                 .epoch_step = plan.updates_in(batches - 1, at.accumulate),
                                 .epoch_steps = plan.updates_in(plan.batches(), at.accumulate)};
  const std::string own = fmt::format("{}", static_cast<float>(schedule(base, progress)));
  if (own == saved.at("rate")) return;
  log(LogLevel::warning, fmt::format("{}: step {} had the learning rate {}; this training has {} (--lr, --schedule)",
                                     checkpoint_.string(), at.step, saved.at("rate"), own));
}

}  // namespace concord::train
