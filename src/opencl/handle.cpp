// The end of the process, as seen by objects that outlive the driver.
#include "concord/opencl/handle.hpp"

#include <atomic>
#include <cstdlib>

namespace concord::opencl {
namespace {

std::atomic<bool> ending{false};

}  // namespace

// Registered at the first question, asked when a context is made: after the driver registered its own exit functions,
// hence run before them, and before the destructors of statics older than the context.
bool process_ending() {
  static const int registered = std::atexit([] { ending = true; });
  return registered == 0 && ending;
}

}  // namespace concord::opencl
