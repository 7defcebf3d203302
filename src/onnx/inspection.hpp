// What an ONNX file has and asks for, found without running it: what `concord check` prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/onnx/declaration.hpp"

namespace CONCORD_PUBLIC concord {
namespace onnx {

struct Inspection {
  std::int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, std::int64_t> opsets;  // by domain; "" is ai.onnx
  std::vector<Declaration> inputs, outputs;
  std::vector<std::string> shape_inputs;  // see Network::shape_inputs
  std::map<std::string, int> operators;   // the number of nodes, in branches and functions too
  std::int64_t parameters = 0;            // tensors
  std::int64_t parameter_elements = 0;
  std::vector<Missing> missing;
  /// Whether `load` accepts the file.
  [[nodiscard]] bool is_supported() const;
};

/// Throws IoError and FormatError as `load`, but reports what is not supported.
[[nodiscard]] Inspection inspect(const std::filesystem::path& path);

}  // namespace onnx
}  // namespace concord
