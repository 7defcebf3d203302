// What the tests of ONNX files share: the files of Debian's libonnx-testdata and of the folder of models.
#pragma once

#include <filesystem>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

/// The folder "data" of libonnx-testdata, or $CONCORD_ONNX_DATA; empty if it is not here.
[[nodiscard]] std::filesystem::path onnx_data();

/// $CONCORD_MODEL_DIR, else the folder shared/models beside the sources; empty if it is not here.
[[nodiscard]] std::filesystem::path model_folder();

/// All .onnx files of both.
[[nodiscard]] std::vector<std::filesystem::path> onnx_files();

}  // namespace concord::test
