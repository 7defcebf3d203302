// See onnx_test.hpp.
#include "onnx/onnx_test.hpp"

#include <algorithm>

#include "concord/core/platform.hpp"

namespace concord::test {
namespace {

std::filesystem::path existing(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(folder, ignored) ? folder : std::filesystem::path();
}

}  // namespace

std::filesystem::path onnx_data() {
  return existing(environment("CONCORD_ONNX_DATA").value_or("/usr/share/libonnx-testdata/data"));
}

std::filesystem::path model_folder() {
  if (const auto folder = environment("CONCORD_MODEL_DIR")) return existing(*folder);
  return existing(folder_of_tests() / "../../shared/models");
}

std::vector<std::filesystem::path> onnx_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : {onnx_data(), model_folder()}) {
    if (folder.empty()) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace concord::test
