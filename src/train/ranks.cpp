// Dividing an epoch among ranks, and what they agree on.
#include "concord/train/ranks.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord::train {

EpochPlan Ranks::own_plan(const EpochPlan& plan) const {
  if (!divide_batches()) return plan;
  CONCORD_CHECK(plan.full.rows >= size(), ArgumentError,
                "an epoch has {} batches of {}, which are too few for {} devices; use a smaller batch or fewer devices",
                plan.full.rows, plan.full.size, size());
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
    if (!owns(batch)) continue;
    const auto first = static_cast<std::size_t>(batch * plan.full.size);
    const std::int64_t count = batch < plan.full.rows ? plan.full.size : plan.last.size;
    const std::span<const std::int32_t> rows = order.subspan(first, static_cast<std::size_t>(count));
    own.insert(own.end(), rows.begin(), rows.end());
  }
  return own;
}

std::int64_t Ranks::batches_of_all(std::int64_t own, const EpochPlan& plan) const {
  if (!divide_batches()) return own;
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
  if (!are_several() || has_failed_) return;
  try {
    group_->barrier();
  } catch (const RankLost&) {  // what needs the other ranks says so
  }
}

}  // namespace concord::train
