// What an exported network and an exported training have in common: values of variables, the model around the graph,
// the file. Internal to the export.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "concord/graph/graph.hpp"
#include "concord/onnx/export/exporter.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {

/// Throws ArgumentError for a version outside [least, kMostOpset].
void check_opset(int opset, int least);

/// Values given by name, or initial values.
class WeightSource {
 public:
  WeightSource(const std::map<std::string, Tensor>& given, std::uint64_t seed) : given_(given), seed_(seed) {}
  /// Throws ShapeError if the given value has another type or shape.
  [[nodiscard]] Tensor value_of(const Variable& variable) const;

 private:
  const std::map<std::string, Tensor>& given_;
  std::uint64_t seed_;
};

[[nodiscard]] Model new_model(int opset);
/// Writes the model, with the data of large initialisers in "<path>.data" if it would not fit into the model.
void write_file(const std::filesystem::path& path, const Model& model);

}  // namespace concord::onnx
