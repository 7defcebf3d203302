// Findings as lines and as JSON, and the verdict.
#include "concord/cli/doctor/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace concord::cli {
namespace {

using Weight = Finding::Weight;

/// Further lines stand under the first one's text.
std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += std::string(12, ' ');
  }
  return result;
}

/// Names of drivers and what users type may hold anything.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

}  // namespace

void DoctorReport::begin(const std::string& section) {
  section_ = section;
  if (out_ != nullptr) *out_ << section << "\n" << std::flush;
}

void DoctorReport::add(const Finding& finding) {
  if (finding.weight == Weight::warning) ++warnings_;
  if (finding.weight == Weight::obstacle && obstacles_++ == 0) first_obstacle_ = finding.trouble;
  if (out_ != nullptr) {
    *out_ << fmt::format("  {:<9} {}\n", name_of(finding.weight), indented(finding.text)) << std::flush;
  }
  nlohmann::json entry{{"section", section_}, {"weight", name_of(finding.weight)}, {"text", finding.text}};
  if (finding.trouble != Trouble::none) entry["trouble"] = words_of(finding.trouble).title;
  document_["findings"].push_back(std::move(entry));
}

std::string DoctorReport::verdict(const std::string& device) const {
  if (can_train()) {
    return on_one_line(fmt::format("You can train on {}; {}.", device,
                                   warnings_ == 0 ? "nothing is wrong" : "see the warnings above"));
  }
  return on_one_line(fmt::format("you cannot train on {}: {}; see the {} for more.", device,
                                 words_of(first_obstacle_).why,
                                 obstacles_ == 1 ? "obstacle above" : "obstacles above"));
}

}  // namespace concord::cli
