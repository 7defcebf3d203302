// Fuzzing the encoding of a table in JSON: it is refused, or becomes JSON and the same again.
#include <cstdlib>

#include "concord/core/error.hpp"
#include "concord/data/table/csv.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  try {
    const auto encoding = data::csv_encoding_from_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (data::csv_encoding_from_json(data::to_json(encoding)) != encoding) std::abort();
  } catch (const FormatError& error) {
    if (!std::string_view(error.what()).starts_with("fuzz")) std::abort();
  }
  return 0;
}
