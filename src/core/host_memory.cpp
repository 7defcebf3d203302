// The exception for memory that runs out, made where there is none left.
#include "concord/core/host_memory.hpp"

#include <fmt/format.h>

#include "concord/core/error.hpp"

namespace concord {
namespace {

// Made while there is memory; its copies share the text.
const OutOfMemory plain("the host's memory does not suffice. Take a smaller batch, or end other programs");

}  // namespace

void throw_no_host_memory(std::string_view what) {
  try {
    throw OutOfMemory(
        fmt::format("{}: the host's memory does not suffice. Take a smaller batch, or end other programs", what));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(plain);
  }
}

}  // namespace concord
