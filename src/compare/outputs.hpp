// Where the results of a comparison go: to standard output, and to files.
#pragma once

#include <string>

#include "concord/compare/compare.hpp"

namespace concord {

struct CompareOutputs {
  bool prints_json = false;                    // in place of the table, without every operator
  std::string html_file = {}, json_file = {};  // empty: none
  /// What is written to files has times, ceilings and every operator (CompareOptions::speed).
  [[nodiscard]] bool has_files() const { return !html_file.empty() || !json_file.empty(); }
  /// Prints and writes. Throws IoError, and then Error saying why where the devices do not agree.
  void give(const Comparison& comparison) const;
};

}  // namespace concord
