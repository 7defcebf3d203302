// What a case of an operator says of its network, and the training step built from it again.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "concord/compare/training_step.hpp"
#include "options.hpp"

namespace concord::cli {

/// Model, sizes, batch, seed, precision and optimizer as text.
[[nodiscard]] std::map<std::string, std::string> case_network(const TrainingOptions& training,
                                                              const models::Model& model, const Dataset& data,
                                                              const std::string& precision);

/// The same step. Throws FormatError when something is missing or is no number, ArgumentError when the zoo has no such
/// network any more.
[[nodiscard]] std::unique_ptr<TrainingStep> case_step(const std::map<std::string, std::string>& network);

}  // namespace concord::cli
