// Labels of the timeline with arguments: facts about a span for programs that read the file. Internal to the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "concord/core/timeline.hpp"

namespace concord::timeline {

/// Members of the span's "args" in the file, by name. The names differ from each other, from "detail" and from "bytes".
using Arguments = std::vector<std::pair<std::string, std::variant<std::string, std::uint64_t>>>;

/// As label, with arguments.
[[nodiscard]] Label label_with(std::string_view name, std::string_view detail, const Arguments& arguments);

}  // namespace concord::timeline
