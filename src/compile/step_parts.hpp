// What each launch of a training step is for: its pass, and the gradients that it completes. The timeline has it, and
// `concord plan` reads it there. Internal to the room.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "concord/compile/program_impl.hpp"

namespace concord {

struct StepLaunch {
  Pass pass = Pass::forward;
  /// Parameters whose gradient is complete after this launch, with its bytes.
  std::vector<std::pair<std::string, std::uint64_t>> gradients;
};

/// A program that updates parameters, or the part of one before or after an exchange between ranks.
struct StepParts {
  RunPart part = RunPart::whole;
  std::vector<StepLaunch> launches;  // of the program; empty for a program that is no training step
};

[[nodiscard]] StepParts step_parts(const ProgramImpl& program);

}  // namespace concord
