// Turns every failed allocation of host memory into an OutOfMemory for users of the library.
#pragma once

#include <new>
#include <string_view>
#include <utility>

namespace concord {

/// Throws OutOfMemory with the message that `what` ("a step of training") found no host memory. Allocates nothing.
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
