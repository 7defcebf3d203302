// What tests of stored records share: files in folders, whole contents, and the warnings that were logged.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/log.hpp"
#include "concord/data/records/records.hpp"
#include "files.hpp"

namespace concord::test {

/// Writes a file with the folders that it lies in.
inline void write_in(const TemporaryFolder& folder, std::string_view name, std::string_view content) {
  std::filesystem::create_directories((folder / name).parent_path());
  write_file(folder / name, content);
}

[[nodiscard]] inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[nodiscard]] inline std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[nodiscard]] inline std::string content_of_row(const data::Records& records, std::int64_t row) {
  std::vector<std::byte> scratch;
  return text_of(records.read(row, scratch).bytes);
}

[[nodiscard]] inline std::vector<std::int32_t> classes_of(const data::Records& records) {
  const auto values = records.labels.at(0).values.values<std::int32_t>();
  return {values.begin(), values.end()};
}

/// Collects the warnings of the library while it lives.
class WarningsHeard {
 public:
  WarningsHeard() {
    set_log([this](LogLevel, std::string_view message) { messages_.emplace_back(message); }, LogLevel::warning);
  }
  WarningsHeard(const WarningsHeard&) = delete;
  WarningsHeard& operator=(const WarningsHeard&) = delete;
  ~WarningsHeard() { set_log({}); }
  [[nodiscard]] const std::vector<std::string>& all() const { return messages_; }
  /// Whether exactly one of them has this part.
  [[nodiscard]] bool one(std::string_view part) const {
    std::size_t count = 0;
    for (const std::string& message : messages_) count += contains(std::string_view(message), part) ? 1 : 0;
    return count == 1;
  }

 private:
  std::vector<std::string> messages_;
};

}  // namespace concord::test
