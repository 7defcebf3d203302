// The results of a comparison, printed and written.
#include "concord/compare/outputs.hpp"

#include <fmt/format.h>

#include <iostream>
#include <span>

#include "concord/core/error.hpp"
#include "concord/core/platform.hpp"

namespace concord {

void CompareOutputs::give(const Comparison& comparison) const {
  const auto write = [](const std::string& file, const std::string& text) {
    write_file_atomically(file, std::as_bytes(std::span(text)));
  };
  std::cout << (prints_json ? comparison.json() + "\n" : comparison.table());
  if (!html_file.empty()) write(html_file, comparison.html());
  if (!json_file.empty()) write(json_file, comparison.json(JsonDetail::operators) + "\n");
  if (!comparison.agrees()) throw Error("the devices do not agree: " + comparison.disagreement());
}

}  // namespace concord
