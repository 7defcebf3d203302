// The results of a comparison as text and files.
#include "concord/compare/outputs.hpp"

#include <fmt/format.h>

#include <span>

#include "concord/core/platform.hpp"

namespace concord {

std::string CompareOutputs::text(const Comparison& comparison) const {
  return prints_json ? comparison.json() + "\n" : comparison.table();
}

void CompareOutputs::write_files(const Comparison& comparison) const {
  const auto write = [](const std::string& file, const std::string& text) {
    write_file_atomically(file, std::as_bytes(std::span(text)));
  };
  if (!html_file.empty()) write(html_file, comparison.html());
  if (!json_file.empty()) write(json_file, comparison.json(JsonDetail::operators) + "\n");
}

std::string CompareOutputs::error(const Comparison& comparison) {
  const std::string why = comparison.disagreement();
  return why.empty() ? why : fmt::format("{}: {}", comparison.verdict(), why);
}

}  // namespace concord
