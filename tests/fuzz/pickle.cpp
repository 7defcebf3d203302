// Fuzzing the pickle machine, and finding the tensors in what it builds.
#include <cstdlib>

#include "concord/core/error.hpp"
#include "concord/weights/torch_state.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const concord::weights::Pickle pickle(bytes, "pickle");
    static_cast<void>(concord::weights::torch_state(pickle, "pickle"));
  } catch (const concord::FormatError& error) {
    if (std::string_view(error.what()).find("pickle") == std::string_view::npos) std::abort();
  }
  return 0;
}
