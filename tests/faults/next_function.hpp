// The library's own function behind one that the test program defines.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace concord::faults {

/// Throws std::runtime_error when no library has it.
template <class Function>
[[nodiscard]] Function* next_function(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) throw std::runtime_error(std::string("no library has ") + name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace concord::faults
