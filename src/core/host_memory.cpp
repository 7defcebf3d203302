// The OutOfMemory exception, made so that throwing it needs no memory.
#include "concord/core/host_memory.hpp"

#include <fmt/format.h>

#include "concord/core/error.hpp"

namespace concord {
namespace {

// Made while there is memory; its copies share the text.
const OutOfMemory plain("host memory is too small. Use a smaller batch, or close other programs");

}  // namespace

void throw_no_host_memory(std::string_view what) {
  try {
    throw OutOfMemory(fmt::format("{}: host memory is too small. Use a smaller batch, or close other programs", what));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(plain);
  }
}

}  // namespace concord
