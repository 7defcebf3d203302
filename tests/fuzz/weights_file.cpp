// Fuzzing the reader of one format of weights files (CONCORD_FUZZ_OPEN). Each tensor is read.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "concord/core/error.hpp"
#include "concord/weights/reader.hpp"

namespace {

/// A file of $TMPDIR until the program ends. HDF5 opens nothing that has no path of its own, so none of memfd_create.
struct File {
  File() : path((std::filesystem::temp_directory_path() / "concord-fuzz-XXXXXX").string()) {
    number = mkstemp(path.data());
    if (number < 0) std::abort();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { unlink(path.c_str()); }

  std::string path;
  int number = -1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file;
  const std::string& path = file.path;
  if (ftruncate(file.number, 0) != 0 || pwrite(file.number, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
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
