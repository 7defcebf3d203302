// Cutting an epoch into batches.
#include "concord/train/epoch_plan.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/data/balanced_order.hpp"
#include "concord/data/dataset.hpp"

namespace concord::train {

EpochPlan plan_epoch(std::int64_t samples, std::int64_t batch, LastBatch last) {
  CONCORD_CHECK(batch >= 1, ArgumentError, "the batch must have at least one sample, got {}", batch);
  CONCORD_CHECK(samples >= 1, ArgumentError, "the data set is empty");
  EpochPlan plan;
  plan.all = plan.samples = samples;
  plan.full.size = std::min(batch, samples);
  plan.full.rows = samples / plan.full.size;
  plan.last.size = samples % plan.full.size;
  if (plan.last.size > 0 && last == LastBatch::drop) {
    plan.samples -= plan.last.size;
    plan.last.size = 0;
  }
  if (plan.last.size > 0 && last == LastBatch::pad) {
    ++plan.full.rows;
    plan.samples = plan.full.rows * plan.full.size;
    plan.last.size = 0;
  }
  if (plan.last.size > 0 && last == LastBatch::merge) {
    if (--plan.full.rows == 0) {
      plan.full = {samples, 1};
      plan.last.size = 0;
    } else {
      plan.last.size += plan.full.size;
    }
  }
  plan.last.first = plan.samples - plan.last.size;
  plan.full.full = plan.last.full = plan.full.size;
  CONCORD_CHECK(plan.full.rows < std::int64_t{1} << 24, ArgumentError,
                "an epoch of {} batches is too long (at most 2^24 - 1); use a larger batch", plan.full.rows);
  return plan;
}

std::vector<std::int32_t> order_of(const EpochPlan& plan, const Samples& samples, const FitOptions& options,
                                   std::uint64_t seed, std::int64_t epoch) {
  const auto number = static_cast<std::uint32_t>(epoch);
  std::vector<std::int32_t> order;
  if (options.balance) {
    order = data::balanced_order(samples, seed, number);
  } else if (options.shuffle && !samples.is_sequential()) {
    order = data::permutation(plan.all, seed, number);
  } else {
    order = rows_from(0, plan.all);
  }
  order.resize(static_cast<std::size_t>(plan.samples));
  for (std::size_t i = static_cast<std::size_t>(plan.all); i < order.size(); ++i) {
    order[i] = order[i - static_cast<std::size_t>(plan.all)];
  }
  return order;
}

std::vector<std::int32_t> rows_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(first));
  return rows;
}

}  // namespace concord::train
