// A series of faults in one session: which, and what must hold after each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faults/faults.hpp"
#include "faults/session.hpp"

namespace concord::test {

/// A DeviceError that is no OutOfMemory, an OutOfMemory, or NotSupported.
enum class ErrorType : std::uint8_t { device, memory, unsupported };

/// What a call answers, and what a user reads of it.
struct Answer {
  int status;
  std::string name;
  ErrorType type;
};

struct Series {
  std::string device;                // its id
  std::string name;                  // of it, as messages have it
  std::optional<faults::Kind> kind;  // none: from some call on all fail
  std::vector<Answer> answers;       // by turns
};

/// Runs the session with the first, the last and evenly spread other calls of the kind failing, `most` in all. Each
/// time it ends with a concord::Error that names the failure, the device and what to do, or has overcome it and its
/// outcome has the bits of a run without fault; no handle is left; and the session runs on the CPU. After the series it
/// runs on the device as if nothing had been. Returns how many ended with an error.
std::size_t check_series(Session session, const Series& series, std::size_t most);

}  // namespace concord::test
