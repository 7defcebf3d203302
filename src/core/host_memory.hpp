// Host memory that runs out, as users of the library see it: an OutOfMemory, whatever allocated.
#pragma once

#include <new>
#include <string_view>
#include <utility>

namespace concord {

/// Throws OutOfMemory, saying that `what` ("a step of training") found no host memory. Needs none itself.
[[noreturn]] void throw_no_host_memory(std::string_view what);

/// function(), with std::bad_alloc turned into OutOfMemory. The functions of the public face run inside it.
template <class Function>
decltype(auto) with_host_memory(std::string_view what, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const std::bad_alloc&) {
    throw_no_host_memory(what);
  }
}

}  // namespace concord
