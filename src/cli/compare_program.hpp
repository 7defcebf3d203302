// `concord compare PROGRAM`: a program of the user's own, whose training is compared instead of run.
#pragma once

#include <string>
#include <vector>

#include "concord/compare/request.hpp"

namespace concord::cli {

/// Whether a model is named so: by a path, "./train" or "build/train".
[[nodiscard]] bool is_program(const std::string& model);

/// Starts the program with these arguments, and waits for its end. Throws Error when it does not start, ends without a
/// training to compare (Trainer::fit), or its comparison finds that the devices do not agree, which it has then said.
void compare_program(const std::string& program, std::vector<std::string> arguments, CompareRequest request);

}  // namespace concord::cli
