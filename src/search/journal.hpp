// Journal: the events of a search as JSON lines, appended as they happen, so that a search that was killed goes on
// where it stopped. Internal to the library.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "concord/core/open_file.hpp"

namespace concord::search {

/// What makes a search the same one: names and values, such as {"network", "lenet"}.
using Identity = std::vector<std::pair<std::string, std::string>>;

class Journal {
 public:
  /// Begins the file with a line of the identity, or reads the events of an earlier search. A last line that is not
  /// whole, as a kill leaves it, is cut off. Throws IoError if the file cannot be written or another process has it
  /// open, FormatError for another line that is no event, and ArgumentError, with the name of what differs, for the
  /// journal of another search.
  Journal(std::filesystem::path file, const Identity& identity);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// The events that were there when the file was opened.
  [[nodiscard]] const std::vector<nlohmann::json>& events() const { return events_; }
  /// Hands the line to the system before it returns: it survives a kill of the process. Throws IoError; what was
  /// written of the line is cut off then, and the journal takes no other one.
  void append(const nlohmann::ordered_json& event);
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  void open();
  [[nodiscard]] std::string read() const;
  void parse(const std::string& text, const Identity& identity);
  void check(const nlohmann::json& header, const Identity& identity) const;

  std::filesystem::path file_;
  OpenFile open_;
  std::size_t whole_ = 0;  // bytes of whole lines
  bool is_broken_ = false;
  std::vector<nlohmann::json> events_;
};

}  // namespace concord::search
