// Fuzzing the reader of one format of weights files (CONCORD_FUZZ_OPEN), with a file in memory. Each tensor is read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "concord/core/error.hpp"
#include "concord/weights/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  try {
    const auto reader = concord::weights::CONCORD_FUZZ_OPEN(path);
    for (const auto& [name, entry] : reader->tensors) {
      const concord::DType type = concord::io::natural_type(*concord::io::find_element(entry.dtype));
      try {
        static_cast<void>(reader->read_as(name, type));
      } catch (const concord::FormatError&) {  // a number beyond the type, or a damaged entry
      }
    }
  } catch (const concord::FormatError& error) {
    const std::string_view message = error.what();
    if (message.find(path) == std::string_view::npos || message.find("byte ") == std::string_view::npos) std::abort();
  }
  return 0;
}
