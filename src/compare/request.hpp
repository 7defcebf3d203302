// What `concord compare PROGRAM` asks of a program that trains with a Trainer: to compare devices on that training
// instead. It stands in the program's environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "concord/compare/outputs.hpp"

namespace concord {

struct CompareRequest {
  static constexpr const char* kVariable = "CONCORD_COMPARE";

  std::string name;                  // for the report
  std::vector<std::string> devices;  // selectors; the first is the reference
  /// Steps, check_every, drift, reference, speed and seconds; the program itself says the others.
  CompareOptions options;
  CompareOutputs outputs;
  int channel = -1;  // an open file, to which the program writes a byte when it has a training to compare

  /// For the environment: JSON.
  [[nodiscard]] std::string text() const;
  /// Of this process's environment; nothing without one. Throws ArgumentError where it cannot be read.
  [[nodiscard]] static std::optional<CompareRequest> of_environment();
};

}  // namespace concord
