// Objects that outlive the driver: the end of the process, and its children.
#include "concord/opencl/driver/handle.hpp"

#include <atomic>
#include <cstdlib>

#include "concord/core/process_mark.hpp"

namespace concord::opencl {
namespace {

std::atomic<bool> ending{false};

}  // namespace

// Registered at the first question, asked when a context is made: after the driver registered its own exit functions,
// hence run before them, and before the destructors of statics older than the context.
bool driver_is_gone() {
  static const int registered = std::atexit([] { ending = true; });
  return (registered == 0 && ending) || driver_is_inherited();
}

bool driver_is_inherited() {
  static const ProcessMark first_use;
  return first_use.is_inherited();
}

}  // namespace concord::opencl
