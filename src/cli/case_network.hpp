// What a case of an operator says of its network, and the training step built from it again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/cli/options.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/compare/run/training_step.hpp"

namespace concord::cli {

/// Model, sizes, batch, seed, precision and optimizer as text.
[[nodiscard]] std::map<std::string, std::string> case_network(const TrainingOptions& training, const Samples& data,
                                                              int classes, const std::string& precision);

/// The same step. Throws FormatError when something is missing or is no number, ArgumentError when the zoo has no such
/// network any more.
[[nodiscard]] std::unique_ptr<TrainingStep> case_step(const std::map<std::string, std::string>& network);

/// What a case says of a program in place of a network, so that program_of gives it back.
[[nodiscard]] std::map<std::string, std::string> case_program(const std::string& program,
                                                              const std::vector<std::string>& arguments);
struct CaseProgram {
  std::string path;
  std::vector<std::string> arguments;
};
/// Nothing where the case is of a network of the zoo. Throws FormatError where it does not say the arguments.
[[nodiscard]] std::optional<CaseProgram> program_of(const std::map<std::string, std::string>& network);

}  // namespace concord::cli
