// `concord compare PROGRAM`: a program of the user's own, whose training is compared instead of run.
#pragma once

#include <string>
#include <vector>

#include "concord/compare/report/request.hpp"

namespace concord::cli {

/// Whether a model is named so: by a path, "./train" or "build/train".
[[nodiscard]] bool is_program(const std::string& model);

/// Runs the program with these arguments and prints what it found. It gets the files of the request as absolute paths.
/// Where JSON is to be printed, what the program itself prints goes to standard error. Throws Error when it does not
/// start, ends without a comparison of a Trainer::fit, or its devices do not agree.
void compare_program(const std::string& program, std::vector<std::string> arguments, CompareRequest request);

/// Throws what the program found wrong: ArgumentError where it was used wrongly, else Error.
void require_agreement(const CompareReply& reply);

/// Runs the program of a case, which replays the case on a device, and writes a timeline of that where `trace_file` is
/// not empty. Gives CaseReplay::json. Throws as compare_program does.
[[nodiscard]] CompareReply replay_program(const std::string& program, std::vector<std::string> arguments,
                                          std::string case_file, const std::string& device, std::string trace_file);

}  // namespace concord::cli
