// The errors for an object that was moved from, or that another thread is using.
#include "concord/core/held.hpp"

#include <fmt/format.h>

#include "concord/core/error.hpp"
#include "concord/core/exclusive.hpp"

namespace concord {

void refuse_moved(std::string_view what) {
  throw ArgumentError(fmt::format("{} is used after it was moved from", what));
}

void Exclusive::refuse(std::string_view what) {
  throw ArgumentError(
      fmt::format("another thread is using {}; only one thread at a time may use it. Give each thread its own object "
                  "(its own device, with Device::open), or guard it with a mutex",
                  what));
}

}  // namespace concord
