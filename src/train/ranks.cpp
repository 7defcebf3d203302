// Dividing an epoch among ranks, and what they agree on.
#include "concord/train/ranks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "concord/core/check.hpp"

namespace concord::train {

collective::Part Ranks::samples_of(std::int64_t samples, int rank) const {
  const double whole = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  const auto end_of = [&](int ranks) {
    if (ranks == size()) return static_cast<std::size_t>(samples);
    const double before = std::accumulate(shares_.begin(), shares_.begin() + ranks, 0.0);
    return static_cast<std::size_t>(std::llround(static_cast<double>(samples) * before / whole));
  };
  return {end_of(rank), end_of(rank + 1)};
}

EpochPlan Ranks::part_of_plan(const EpochPlan& plan, int rank) const {
  EpochPlan part = plan;
  part.full.size = static_cast<std::int64_t>(samples_of(plan.full.size, rank).size());
  part.last.size = static_cast<std::int64_t>(samples_of(plan.last.size, rank).size());
  part.full.parts = part.last.parts = size();
  CONCORD_CHECK(part.full.size > 0, ArgumentError,
                "a batch of {} sample{}, split {:.3g}, has none for rank {}; use a larger batch or fewer devices",
                plan.full.size, plan.full.size == 1 ? "" : "s", fmt::join(shares_, " : "), rank);
  part.samples = part.full.rows * part.full.size + part.last.size;
  part.last.first = part.samples - part.last.size;
  return part;
}

EpochPlan Ranks::own_plan(const EpochPlan& plan) const {
  if (!divide_batches()) return plan;
  if (are_split()) return part_of_plan(plan, rank());
  CONCORD_CHECK(plan.full.rows >= size(), ArgumentError,
                "an epoch has {} batch{} of {}, too few for {} devices; use a smaller batch or fewer devices",
                plan.full.rows, plan.full.rows == 1 ? "" : "es", plan.full.size, size());
  EpochPlan own = plan;
  own.full.rows = own_batches(plan.full.rows);
  if (!owns(plan.full.rows)) own.last.size = 0;
  own.samples = own.full.rows * own.full.size + own.last.size;
  own.last.first = own.samples - own.last.size;
  return own;
}

std::vector<std::int32_t> Ranks::own_rows(const EpochPlan& plan, std::span<const std::int32_t> order) const {
  if (!divide_batches()) return {order.begin(), order.end()};
  std::vector<std::int32_t> own;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
    if (!are_split() && !owns(batch)) continue;
    const std::span<const std::int32_t> rows = own_rows_of(plan, order, batch);
    own.insert(own.end(), rows.begin(), rows.end());
  }
  return own;
}

std::span<const std::int32_t> Ranks::own_rows_of(const EpochPlan& plan, std::span<const std::int32_t> order,
                                                 std::int64_t batch) const {
  const std::int64_t count = batch < plan.full.rows ? plan.full.size : plan.last.size;
  const collective::Part part =
      are_split() ? samples_of(count, rank()) : collective::Part{0, static_cast<std::size_t>(count)};
  return order.subspan(static_cast<std::size_t>(batch * plan.full.size) + part.begin, part.size());
}

std::int64_t Ranks::batches_of_all(std::int64_t own, const EpochPlan& plan) const {
  if (!divide_batches() || are_split()) return own;
  const std::int64_t each = own_of_update(update_);
  return std::min((own + each - 1) / each * update_, plan.batches());
}

void Ranks::require_equal(std::span<const Agreed> values) const {
  if (!are_several()) return;
  const auto ranks = static_cast<std::size_t>(size()), mine = static_cast<std::size_t>(rank());
  std::vector<std::uint64_t> all(ranks * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) all[mine * values.size() + i] = values[i].value;
  group_->all_gather(std::as_writable_bytes(std::span(all)), values.size() * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t other = 1; other < ranks; ++other) {
      const std::uint64_t first = all[i], value = all[other * values.size() + i];
      if (first == value) continue;
      const std::string numbers = values[i].is_hash ? "" : fmt::format(": {} and {}", first, value);
      throw ArgumentError(
          fmt::format("{} of rank 0 and of rank {} are not the same{}; all ranks of a training must be "
                      "started alike",
                      values[i].what, other, numbers));
    }
  }
}

double Ranks::agreed(double own) const {
  if (divide_batches()) return own;  // a sum of all ranks already
  Metrics metrics;
  metrics.loss = own;
  share(metrics);
  return metrics.loss;
}

bool Ranks::any(bool own) const {
  if (!are_several()) return own;
  float count = own ? 1 : 0;
  group_->all_reduce({&count, 1});
  return count > 0;
}

void Ranks::share(Metrics& metrics, int root) const {
  if (!are_several()) return;
  std::vector<double*> values{&metrics.loss};
  if (metrics.accuracy) values.push_back(&*metrics.accuracy);
  if (metrics.top_k) values.push_back(&*metrics.top_k);
  for (auto& [name, value] : metrics.named) values.push_back(&value);
  std::vector<double> sent;
  for (const double* value : values) sent.push_back(*value);
  group_->broadcast(std::as_writable_bytes(std::span(sent)), root);
  for (std::size_t i = 0; i < values.size(); ++i) *values[i] = sent[i];
}

void Ranks::wait() const {
  if (are_several() && !has_failed_) group_->barrier();
}

Ranks ranks_of(const TrainerOptions& options, std::int64_t accumulate) {
  const BatchSplit& split = options.split;
  CONCORD_CHECK(!split.by_speed || split.shares.empty(), ArgumentError,
                "a split of batches is given by shares, or by speed, not by both");
  const bool in_stages = options.pipeline.is_on() || options.model_parallel.is_on();
  CONCORD_CHECK(!split.is_on() || !in_stages, ArgumentError,
                "a network that is divided among devices has no split of batches: each device works on all samples");
  const int size = options.group ? options.group->size() : 1;
  if (!options.group || !split.is_on()) return {options.group, in_stages ? accumulate : accumulate * size, in_stages};
  std::vector<double> shares = split.shares;
  if (split.by_speed) shares.assign(static_cast<std::size_t>(size), 1);  // until it is measured
  CONCORD_CHECK(std::cmp_equal(shares.size(), size), ArgumentError,
                "a split of batches needs a share for each of the {} devices, got {}", size, shares.size());
  for (const double share : shares) {
    CONCORD_CHECK(std::isfinite(share) && share > 0, ArgumentError,
                  "the shares of a split of batches must be numbers above 0, got {}", share);
  }
  Ranks ranks(options.group, accumulate);
  ranks.set_shares(std::move(shares));
  return ranks;
}

int least_ranks(const TrainerOptions& options) {
  return options.min_ranks > 0 ? options.min_ranks : collective::least_ranks();
}

}  // namespace concord::train
