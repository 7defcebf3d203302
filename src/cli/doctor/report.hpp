// The report of `concord doctor`: findings, printed one by one as they come, and a verdict at the end.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "concord/cli/doctor/finding.hpp"

namespace concord::cli {

class DoctorReport {
 public:
  /// Prints findings to this stream. If it is null, prints nothing.
  explicit DoctorReport(std::ostream* out) : out_(out) {}

  void begin(const std::string& section);
  void add(const Finding& finding);
  void add(std::span<const Finding> findings) {
    for (const Finding& finding : findings) add(finding);
  }
  /// What was found, and whatever else is put there, for --json.
  [[nodiscard]] nlohmann::json& document() { return document_; }

  [[nodiscard]] bool can_train() const { return obstacles_ == 0; }
  /// One sentence on one line: whether training on `device` is possible, by its readable name, and if not, why. It
  /// names only the trouble of the first obstacle; the findings above it explain it.
  [[nodiscard]] std::string verdict(const std::string& device) const;

 private:
  std::ostream* out_;
  std::string section_;
  Trouble first_obstacle_ = Trouble::none;
  int warnings_ = 0, obstacles_ = 0;
  nlohmann::json document_ = {{"findings", nlohmann::json::array()}};
};

}  // namespace concord::cli
