// Detects the end of the process and forked children, where OpenCL objects outlive their driver.
#include "concord/opencl/driver/handle.hpp"

#include <atomic>
#include <cstdlib>

#include "concord/core/process_mark.hpp"

namespace concord::opencl {
namespace {

std::atomic<bool> ending{false};

}  // namespace

// The first call registers the exit function. A context makes that call after the driver has registered its own exit
// functions, so that this one runs before them, and before the destructors of statics older than the context.
bool driver_is_gone() {
  static const int registered = std::atexit([] { ending = true; });
  return (registered == 0 && ending) || driver_is_inherited();
}

bool driver_is_inherited() {
  static const ProcessMark first_use;
  return first_use.is_inherited();
}

}  // namespace concord::opencl
