// Folds in turn.
#include "concord/train/cross_validation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/data/selection.hpp"

namespace concord {

FoldStatistics statistics_of(std::span<const double> values) {
  FoldStatistics statistics;
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return statistics;
  for (const double value : values) statistics.mean += value / n;
  if (values.size() == 1) return statistics;
  double squares = 0;
  for (const double value : values) squares += (value - statistics.mean) * (value - statistics.mean);
  statistics.deviation = std::sqrt(squares / (n - 1));
  return statistics;
}

std::vector<FoldResult> cross_validate(const std::function<Trainer(int)>& make, const SharedSamples& samples,
                                       const SharedSamples& plain, const std::vector<std::vector<std::int32_t>>& folds,
                                       const FitOptions& options,
                                       const std::function<void(int, FitOptions&)>& options_of,
                                       const std::function<void(int, const FoldResult&, Trainer&)>& done) {
  CONCORD_CHECK(samples && plain, ArgumentError, "cross-validation needs samples");
  const auto same = [&](int, std::span<const std::int32_t>) { return FoldSamples{samples, plain}; };
  return cross_validate(make, same, folds, options, options_of, done);
}

std::vector<FoldResult> cross_validate(
    const std::function<Trainer(int)>& make,
    const std::function<FoldSamples(int, std::span<const std::int32_t>)>& samples_for,
    const std::vector<std::vector<std::int32_t>>& folds, const FitOptions& options,
    const std::function<void(int, FitOptions&)>& options_of,
    const std::function<void(int, const FoldResult&, Trainer&)>& done) {
  CONCORD_CHECK(make && samples_for, ArgumentError, "cross-validation needs a trainer and samples");
  CONCORD_CHECK(folds.size() >= 2, ArgumentError, "cross-validation needs at least 2 folds, got {}", folds.size());
  std::vector<FoldResult> results;
  for (std::size_t left_out = 0; left_out < folds.size(); ++left_out) {
    std::vector<std::int32_t> rest;
    for (std::size_t f = 0; f < folds.size(); ++f) {
      if (f != left_out) rest.insert(rest.end(), folds[f].begin(), folds[f].end());
    }
    std::sort(rest.begin(), rest.end());
    const int fold = static_cast<int>(left_out);
    const FoldSamples of_fold = samples_for(fold, rest);
    const data::Selection train(of_fold.samples, std::move(rest));
    const data::Selection held_out(of_fold.plain ? of_fold.plain : of_fold.samples, folds[left_out]);
    FitOptions own = options;
    own.validate = held_out;
    if (options_of) options_of(fold, own);
    const auto start = std::chrono::steady_clock::now();
    Trainer trainer = make(fold);
    FoldResult result;
    result.history = trainer.fit(train, own);
    if (options.stop && options.stop() && result.history.end == History::End::stopped) break;
    result.metrics = trainer.evaluate(held_out, {.metrics = own.metrics, .bad_samples = own.bad_samples});
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (done) done(fold, result, trainer);
    results.push_back(std::move(result));
    if (options.stop && options.stop()) break;
  }
  return results;
}

}  // namespace concord
