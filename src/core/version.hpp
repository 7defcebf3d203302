// The version of the library; equals project(VERSION) in CMakeLists.txt. Files and caches contain it.
#pragma once

#include <string_view>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace concord
