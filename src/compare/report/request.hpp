// A request of `concord compare PROGRAM`, or of `concord replay` for a case of a program, to a program that trains with
// a Trainer: it compares devices on that training, or replays the case, instead of training. The request is in the
// program's environment; the answer comes through a channel.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "concord/compare/report/outputs.hpp"

namespace concord {

struct CompareReply {
  std::string text;           // to be printed; of a replay CaseReplay::json
  std::string error;          // why the devices do not agree, or could not be compared; empty: they agree
  bool is_wrong_use = false;  // the request is invalid (ArgumentError)
  /// Of what a program wrote to the channel; nothing where that is no whole answer.
  [[nodiscard]] static std::optional<CompareReply> read(const std::string& report);
};

struct CompareRequest {
  static constexpr const char* kVariable = "CONCORD_COMPARE";

  std::string name;                  // for the report
  std::vector<std::string> devices;  // selectors; the first is the reference
  /// Steps, check_every, drift, reference, speed, seconds and case_node; the program itself says the others.
  CompareOptions options = {};
  CompareOutputs outputs = {};
  std::map<std::string, std::string> network = {};  // of a case that is saved: the program and its arguments
  std::string replayed_case = {};                   // a file, to be replayed on devices[0] in place of a comparison
  std::string trace_file = {};                      // for a timeline of it
  int channel = -1;                                 // of a ParentChannel

  /// For the environment: JSON.
  [[nodiscard]] std::string text() const;
  /// Of this process's environment; nothing without one. Throws ArgumentError where it cannot be read.
  [[nodiscard]] static std::optional<CompareRequest> of_environment();
  /// Writes out what this process has printed, answers, and waits until the command has ended this process or hung up.
  void answer(const CompareReply& reply) const;
};

}  // namespace concord
