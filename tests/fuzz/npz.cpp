// Fuzzing the readers of numpy's arrays: an archive, or with another first byte than P one array.
#include "concord/io/npz.hpp"

#include <cstdlib>

#include "concord/core/error.hpp"
#include "concord/data/table/arrays.hpp"
#include "concord/io/npy.hpp"
#include "file_of_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const test::FileOfInput file;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    if (!content.starts_with("P")) {
      static_cast<void>(io::parse_npy(content, file.path()));
      return 0;
    }
    file.write({data, size});
    const io::NpzFile archive(file.path());
    for (const std::string& name : archive.names()) {
      try {
        static_cast<void>(archive.read(name));
      } catch (const FormatError&) {  // the others may be whole
      }
    }
    static_cast<void>(data::npz(file.path()));
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).find(file.path()) == std::string_view::npos) std::abort();
  } catch (const ArgumentError&) {  // no array has a usual name
  }
  return 0;
}
