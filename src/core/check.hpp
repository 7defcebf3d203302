// The one check macro: throws an Error class of choice with a formatted message. Internal to the library.
#pragma once

#include <fmt/format.h>

#include "concord/core/error.hpp"

/// CONCORD_CHECK(condition, ShapeError, "conv2d: expected {} channels, got {}", a, b);
#define CONCORD_CHECK(condition, ErrorClass, ...)              \
  do {                                                         \
    if (!(condition)) {                                        \
      throw ::concord::ErrorClass(::fmt::format(__VA_ARGS__)); \
    }                                                          \
  } while (false)
