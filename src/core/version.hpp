// The version of the library, as project(VERSION) in CMakeLists.txt has it. Used where files and caches name their
// maker.
#pragma once

#include <string_view>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace concord
