// The marks that libraries put on their messages.
#include "concord/core/reason.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

namespace concord {

std::string reason(const std::exception& error) {
  if (const auto* of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("{}: {}", of_file->path1().string(), of_file->code().message());
  }
  const std::string_view text = error.what();
  if (!text.starts_with("[json.exception.")) return std::string(text);
  const std::size_t end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

}  // namespace concord
