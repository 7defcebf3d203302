// Fuzzing the reader of ONNX models: a model is refused with its byte, or read, written and read again without a loss.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "concord/core/error.hpp"
#include "concord/onnx/host_tensor.hpp"
#include "concord/onnx/wire.hpp"

namespace {

// A folder with 64 bytes of external data, w.bin.
std::filesystem::path folder_of_data() {
  const auto folder = std::filesystem::temp_directory_path() / ("concord-fuzz-onnx-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "w.bin", std::ios::binary) << std::string(64, 'w');
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const std::filesystem::path folder = folder_of_data();
  const auto image = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  try {
    const onnx::Model model = onnx::parse_model(image, "fuzz.onnx", folder);
    for (const onnx::TensorProto& tensor : model.graph.initializers) {
      try {
        static_cast<void>(onnx::host_tensor_of(tensor));
      } catch (const NotSupported&) {  // strings and others
      }
    }
    const std::string bytes = onnx::serialise(model);
    const onnx::Model again = onnx::parse_model(std::make_shared<const std::string>(bytes), "fuzz.onnx", folder);
    if (onnx::serialise(again) != bytes) std::abort();
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).find("fuzz.onnx, byte ") == std::string_view::npos) std::abort();
  } catch (const ArgumentError&) {  // an attribute without a type cannot be written
  }
  return 0;
}
