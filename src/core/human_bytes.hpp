// Numbers of bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace concord {

/// "139.8 GiB", "512.0 KiB", "7 B".
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

}  // namespace concord
