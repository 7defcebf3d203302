// onnx::Network: an ONNX file as a module. It is traced like any other network, so training, freezing, fine-tuning,
// comparing devices, profiles and precisions apply to it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/nn/module.hpp"
#include "concord/onnx/declaration.hpp"

namespace CONCORD_PUBLIC concord {
namespace onnx {

struct LoadOptions {
  /// Inputs with values that are fixed while the network is built, such as a sampling rate or a size. They are no
  /// inputs of the network any more. i32 for the types int64 and int32, u8 for bool, f32 for float.
  std::map<std::string, Tensor> known = {};
  /// Values of the file's graph to return instead of its outputs, by name; for example what goes into the last layer,
  /// to put a new one behind it. Nodes and parameters that these do not need are left out. Empty: the outputs.
  std::vector<std::string> outputs = {};
};

/// The nodes of the file are interpreted at each trace for the shapes at hand, so sizes may be free. Numbers that do
/// not depend on the inputs, such as shapes, are computed while tracing. Initialisers and constant tensors of type
/// float, except scalars, are parameters under their names, a second "w" as "w_1", and can be trained; running
/// statistics of a BatchNormalization are not trained. BatchNormalization and Dropout behave by Graph::training().
///
/// Values have the type dtype_of(type) of their ONNX type: int64 is i32, bool is u8. int64 constants beyond i32 that do
/// not vanish in shapes are refused. A node that fails is named in the error, with its operator and the file.
class Network : public nn::Module {
 public:
  /// The inputs and outputs in the order of the file, without inputs that are known or have an initialiser.
  [[nodiscard]] const std::vector<Declaration>& inputs() const;
  [[nodiscard]] const std::vector<Declaration>& outputs() const;
  /// The inputs on which a shape depends: they must be given as LoadOptions::known.
  [[nodiscard]] std::vector<std::string> shape_inputs() const;

  /// Takes all inputs by name or position; returns all outputs by name. Throws ArgumentError for a missing input,
  /// ShapeError for an input that contradicts its declaration, NotSupported, ArgumentError or ShapeError that name a
  /// node.
  [[nodiscard]] Values forward_values(const Values& inputs) override;
  /// As forward_values, also for a network whose inputs are all known.
  [[nodiscard]] Values trace(Graph& graph, const Values& inputs);
  [[nodiscard]] std::vector<std::string> input_names() const override;

  struct Impl;
  explicit Network(std::shared_ptr<Impl> impl);

 private:
  [[nodiscard]] Values interpret(Graph& graph, const Values& inputs);

  std::shared_ptr<Impl> impl_;
};

/// Reads a .onnx file and the files of its external data, which must lie in its folder. Throws IoError, FormatError
/// with the byte, ArgumentError for a known value that is no input or has another type, and NotSupported that lists
/// every node without support with the reason.
[[nodiscard]] Network load(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace onnx
}  // namespace concord
