// Cross-validation: a network trained and evaluated on each fold of a data set.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/samples.hpp"
#include "concord/train/options.hpp"
#include "concord/train/report.hpp"
#include "concord/train/trainer.hpp"

namespace CONCORD_PUBLIC concord {

/// The training that left out one fold.
struct FoldResult {
  Metrics metrics;  // of the fold that was left out
  History history;
  double seconds = 0;  // of training and evaluation
};

/// Mean and deviation of a number over folds; the deviation is that of a sample (n − 1), 0 for one fold.
struct FoldStatistics {
  double mean = 0, deviation = 0;
};
[[nodiscard]] FoldStatistics statistics_of(std::span<const double> values);

/// For each fold: makes a trainer, fits it to all other folds and evaluates it on the fold.
///
/// - `make` is called with the number of the fold, and must return a trainer with fresh weights.
/// - `samples` are trained on, and `plain` has the same samples without augmentation to validate on; it may be the same
///   set.
/// - `folds` has the rows of each fold, as data::folds deals them.
/// - `options` are those of each fit; its validation set is the fold. `options_of`, if it is set, changes them for a
///   fold, for example to give it a log of its own.
/// - `done`, if it is set, is called after each fold.
///
/// Returns the results of the folds whose training came to its end: `FitOptions::stop` leaves out the fold that it
/// interrupts, and those after it. A data set in memory is uploaded once for all folds, because a fold is a
/// data::Selection of it. Throws ArgumentError for fewer than two folds, and what Trainer::fit throws.
[[nodiscard]] std::vector<FoldResult> cross_validate(
    const std::function<Trainer(int fold)>& make, const SharedSamples& samples, const SharedSamples& plain,
    const std::vector<std::vector<std::int32_t>>& folds, const FitOptions& options,
    const std::function<void(int fold, FitOptions& options)>& options_of = {},
    const std::function<void(int fold, const FoldResult& result, Trainer& trainer)>& done = {});

/// What a fold is trained and validated on: all samples of the set, prepared for this fold. `plain` has them without
/// augmentation; none: the same set.
struct FoldSamples {
  SharedSamples samples, plain;
};

/// The same for data whose preparation is fitted, as that of a table: `samples_for` gets the number of the fold and the
/// rows to train on, and prepares the set by these rows alone. It is called before `make`.
[[nodiscard]] std::vector<FoldResult> cross_validate(
    const std::function<Trainer(int fold)>& make,
    const std::function<FoldSamples(int fold, std::span<const std::int32_t> rows)>& samples_for,
    const std::vector<std::vector<std::int32_t>>& folds, const FitOptions& options,
    const std::function<void(int fold, FitOptions& options)>& options_of = {},
    const std::function<void(int fold, const FoldResult& result, Trainer& trainer)>& done = {});

}  // namespace concord
