// What the outputs of a network say of samples: classes, numbers, several labels, texts.
#pragma once

#include <vector>

#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/results.hpp"

namespace concord::cli {

/// "target 0", "target 1", … for numbers without names.
[[nodiscard]] std::vector<std::string> names_of_targets(std::int64_t count);
/// Sets the numbers of the predictions, which are the rows of `outputs`.
void add_numbers(const Tensor& outputs, const std::vector<Prediction*>& to);
/// Gives the predictions whose outputs are NaN or infinite an error instead of an answer. `outputs` has a row for each.
void refuse_not_finite(const Tensor& outputs, const std::vector<Prediction*>& to);

/// Asks the network for `samples`, one for each of `to`, and writes what it says there; also the names of classes or
/// numbers, and the outputs where they are kept, into `results`. `all` is the data set of which they are. Throws
/// ArgumentError for options that are not for such outputs.
void add_answers(Trainer& trainer, const DataSource& source, const Samples& all, const Dataset& samples,
                 const PredictArguments& options, const SavedNetwork& saved, const std::vector<Prediction*>& to,
                 Results& results);

}  // namespace concord::cli
