// reason(): what went wrong in a library, as a part of a sentence of ours.
#pragma once

#include <exception>
#include <string>

namespace concord {

/// What the exception says: of std::filesystem's the file and why, of nlohmann's JSON without the mark in brackets
/// before it, of any other all.
[[nodiscard]] std::string reason(const std::exception& error);

}  // namespace concord
