// What the outputs of a network say of samples: classes, numbers, several labels, texts.
#pragma once

#include <vector>

#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/results.hpp"

namespace concord::cli {

/// Asks the network for `samples`, one for each of `to`, and writes what it says there; also the names of classes or
/// numbers, and the outputs, into `results`. `all` is the data set of which they are. Throws ArgumentError for options
/// that are not for such outputs.
void add_answers(Trainer& trainer, const DataSource& source, const Samples& all, const Dataset& samples,
                 const PredictArguments& options, const SavedNetwork& saved, const std::vector<Prediction*>& to,
                 Results& results);

}  // namespace concord::cli
