// The model around an exported graph.
#include "concord/onnx/export/model_file.hpp"

#include "concord/compile/variables.hpp"
#include "concord/core/check.hpp"
#include "concord/core/version.hpp"
#include "concord/onnx/export.hpp"

namespace concord::onnx {
namespace {

/// The version of the file format that came with a version of the operators.
std::int64_t ir_version_of(int opset) {
  if (opset < 15) return 7;
  if (opset < 19) return 8;
  return opset < 21 ? 9 : 10;
}

}  // namespace

void check_opset(int opset, int least) {
  CONCORD_CHECK(opset >= least && opset <= kMostOpset, ArgumentError,
                "the export writes versions {} to {} of ONNX's operators here, not {}", least, kMostOpset, opset);
}

Tensor WeightSource::value_of(const Variable& variable) const {
  const auto found = given_.find(variable.name);
  if (found == given_.end()) return initial_value(variable, seed_);
  CONCORD_CHECK(found->second.spec() == variable.spec, ShapeError, "the value of '{}' must be {}, got {}",
                variable.name, variable.spec.str(), found->second.spec().str());
  return found->second;
}

Model new_model(int opset) {
  Model model;
  model.ir_version = ir_version_of(opset);
  model.producer = "concord";
  model.producer_version = kVersion;
  model.opsets = {{"", opset}};
  return model;
}

void write_file(const std::filesystem::path& path, const Model& model) {
  constexpr std::size_t kMost = std::size_t{3} << 29;  // 1.5 GiB; messages end at 2
  std::size_t bytes = 0;
  for (const TensorProto& tensor : model.graph.initializers) bytes += tensor.data.data.size();
  WriteOptions options;
  if (bytes >= kMost) options.external_data = path.filename().string() + ".data";
  write_model(path, model, options);
}

}  // namespace concord::onnx
