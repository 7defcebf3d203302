// The outputs of a network for any number of samples, also of one in an ONNX file that fixes the samples of a batch.
// Used by all parts of `concord predict`.
#pragma once

#include <map>
#include <string>

#include "concord/cli/predict/results.hpp"

namespace concord::cli {

// A row of outputs for each of `samples`, of which there is at least one. Where a file fixes the samples of a batch,
// the last batch is filled with copies of the last sample, whose outputs are dropped. Throw as Trainer::predict and
// Trainer::predict_values.

[[nodiscard]] Tensor outputs_of(Trainer& trainer, const Dataset& samples, const PredictArguments& options,
                                const SavedNetwork& saved);
/// Those of a network with several.
[[nodiscard]] std::map<std::string, Tensor> named_outputs_of(Trainer& trainer, const Dataset& samples,
                                                             const PredictArguments& options,
                                                             const SavedNetwork& saved);

}  // namespace concord::cli
