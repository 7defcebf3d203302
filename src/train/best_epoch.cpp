// The score of each epoch, and how a checkpoint keeps the best one: numbers in its info, weights under a prefix.
#include "concord/train/best_epoch.hpp"

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/graph/shard.hpp"

namespace concord::train {
namespace {

constexpr const char* kMonitor = "best_monitor";
constexpr const char* kScore = "best_score";
constexpr const char* kEpoch = "best_epoch";
constexpr const char* kSince = "best_since";
constexpr const char* kPrefix = "best_prefix";

std::string monitor_of(const EarlyStopping& options) {
  if (!options.metric.empty()) {
    return fmt::format("the {} {}", options.larger_is_better ? "largest" : "smallest", options.metric);
  }
  return options.monitor == EarlyStopping::Monitor::loss ? "loss" : "accuracy";
}

/// The smaller, the better.
double score_of(const Metrics& validation, const EarlyStopping& options) {
  if (!options.metric.empty()) {
    const double value = validation.named.at(options.metric);
    return options.larger_is_better ? -value : value;
  }
  return options.monitor == EarlyStopping::Monitor::loss ? validation.loss : -validation.accuracy.value();
}

template <class Number>
Number number_of(const io::CheckpointInfo& info, const char* name, const std::string& file) {
  const auto found = info.extra.find(name);
  const auto number = found == info.extra.end() ? std::nullopt : number_in_text<Number>(found->second);
  CONCORD_CHECK(number, FormatError, "{}: the checkpoint's '{}' is no number", file, name);
  return *number;
}

/// A prefix that no other tensor has: a network may have a child with its name.
std::string free_prefix(const io::TensorMap& tensors) {
  std::string prefix = "best.";
  const auto has_prefix = [&](const auto& one) { return one.first.starts_with(prefix); };
  while (std::ranges::any_of(tensors, has_prefix)) prefix.insert(0, 1, '\'');
  return prefix;
}

}  // namespace

BestEpoch::BestEpoch(const EarlyStopping& options)
    : monitor_(monitor_of(options)), keeps_weights_(options.restore_best) {}

bool BestEpoch::fits(const EarlyStopping& options) const { return monitor_ == monitor_of(options); }

std::optional<BestEpoch> BestEpoch::take_from(io::Checkpoint& checkpoint, const std::string& file) {
  const io::CheckpointInfo& info = checkpoint.info;
  const auto monitor = info.extra.find(kMonitor);
  if (monitor == info.extra.end()) return std::nullopt;
  BestEpoch best;
  best.monitor_ = monitor->second;
  best.score_ = {number_of<double>(info, kScore, file), number_of<std::int64_t>(info, kSince, file),
                 number_of<std::int64_t>(info, kEpoch, file)};
  const auto prefix = info.extra.find(kPrefix);
  if (prefix == info.extra.end()) return best;
  best.are_whole_ = true;
  for (auto at = checkpoint.tensors.begin(); at != checkpoint.tensors.end();) {
    if (at->first.starts_with(prefix->second)) {
      best.weights_.emplace(at->first.substr(prefix->second.size()), std::move(at->second));
      at = checkpoint.tensors.erase(at);
    } else {
      ++at;
    }
  }
  return best;
}

void BestEpoch::write_to(io::CheckpointInfo& info, io::TensorMap& tensors, const io::TensorMap& weights) const {
  info.extra[kMonitor] = monitor_;
  info.extra[kScore] = fmt::format("{}", score_.best);
  info.extra[kEpoch] = fmt::format("{}", score_.epoch);
  info.extra[kSince] = fmt::format("{}", score_.since);
  if (weights.empty()) return;
  const std::string prefix = free_prefix(tensors);
  info.extra[kPrefix] = prefix;
  for (const auto& [name, tensor] : weights) tensors.emplace(prefix + name, tensor);
}

void BestEpoch::cut(const Weights& weights) {
  if (!std::exchange(are_whole_, false)) return;
  for (auto& [name, tensor] : weights_) {
    const auto known = weights.known().find(name);
    CONCORD_CHECK(known == weights.known().end() || known->second == tensor.spec(), FormatError,
                  "the checkpoint's weights of its best epoch are those of another network: '{}' is {}, not {}", name,
                  tensor.spec().str(), known->second.str());
    tensor = part_of(tensor, weights.shard_of(name));
  }
  std::erase_if(weights_, [&](const auto& one) { return !weights.variables()->contains(one.first); });
}

void BestEpoch::note(const EpochReport& report, const EarlyStopping& options, const Weights& weights) {
  const double score = score_of(*report.validation, options);
  if (!(score < score_.best - options.min_delta)) {
    ++score_.since;
    return;
  }
  score_ = {score, 0, report.epoch};
  keeps_weights_ = options.restore_best;
  weights_ = keeps_weights_ ? weights.all() : io::TensorMap();
}

void BestEpoch::restore_weights(const EarlyStopping& options, const Weights& weights) const {
  if (!options.restore_best) return;
  for (const auto& [name, tensor] : weights_) weights.variables()->write(name, tensor);
}

void BestEpoch::follow(const Score& score, const Weights& weights) {
  if (keeps_weights_ && score.epoch != score_.epoch) weights_ = weights.all();
  score_ = score;
}

}  // namespace concord::train
