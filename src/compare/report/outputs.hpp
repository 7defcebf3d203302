// Where the results of a comparison go.
#pragma once

#include <map>
#include <string>

#include "concord/compare/compare.hpp"

namespace concord {

struct CompareOutputs {
  bool prints_json = false;                                    // in place of the table, without every operator
  std::string html_file = {}, json_file = {}, case_file = {};  // empty: none
  /// What is written to files has times, ceilings and every operator (CompareOptions::speed).
  [[nodiscard]] bool has_files() const { return !html_file.empty() || !json_file.empty(); }
  /// To be printed.
  [[nodiscard]] std::string text(const Comparison& comparison) const;
  /// The case is that of the first device that has one, the reference last; one that diverges comes before others.
  /// Where none has a case, a warning says so. `network` is what it is built from (OperatorCase::network). Throws
  /// IoError.
  void write_files(const Comparison& comparison, const std::map<std::string, std::string>& network) const;
  /// The message of a command that ends with this comparison; empty where the devices agree.
  [[nodiscard]] static std::string error(const Comparison& comparison);
};

}  // namespace concord
