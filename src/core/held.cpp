// What is told to whoever uses an object that is gone or not theirs.
#include "concord/core/held.hpp"

#include <fmt/format.h>

#include "concord/core/error.hpp"
#include "concord/core/exclusive.hpp"

namespace concord {

void refuse_moved(std::string_view what) {
  throw ArgumentError(
      fmt::format("{} is used after it was moved from: what it held is in the object that it was moved to", what));
}

void Exclusive::refuse(std::string_view what) {
  throw ArgumentError(
      fmt::format("{} is being used by another thread, and one thread at a time may use it. Give each thread an object "
                  "of its own (a device of its own, with Device::open), or let a mutex guard it",
                  what));
}

}  // namespace concord
