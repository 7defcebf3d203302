// ONNX export: writes a network, or a step of its training, as a .onnx file that other programs run. It walks the
// traced graph; docs/guide/onnx-export.md says how each operator is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/minimize.hpp"

namespace CONCORD_PUBLIC concord {
namespace onnx {

/// The lowest and the highest version of ONNX's operators that the export writes.
inline constexpr int kLeastOpset = 13, kMostOpset = 21;

/// A named input of a network.
struct InputSpec {
  std::string name;
  TensorSpec spec;
};

struct ExportOptions {
  /// The shape of the one input, with its batch; it is called "input".
  Shape input = {};
  DType dtype = DType::f32;  // of `input`
  /// The inputs of a network that has several, or with names of your own. Set this or `input`.
  std::vector<InputSpec> inputs = {};
  int opset = 17;
  /// The name of the batch as a free size, such as "N": the first dimension of every input. The network is traced with
  /// two batches to find the sizes that depend on it. Empty: the batch is that of the inputs.
  std::string batch = {};
  /// Names of the outputs in their order. Without them, outputs keep the names that the network gives them; otherwise a
  /// single one is "output", and several are "output0", "output1", ….
  std::vector<std::string> outputs = {};
  /// Values of the parameters by name, as weights::read gives those of a file. Others get the initial value for `seed`.
  std::map<std::string, Tensor> weights = {};
  std::uint64_t seed = 0;
};

/// Writes the network in evaluation mode. Parameters are initialisers under their names. Parameters of 1.5 GiB and more
/// together go to the file "<path>.data". Throws ArgumentError for options that do not fit together, ShapeError for
/// inputs or weights of the wrong shape, IoError, and NotSupported with all operators that ONNX cannot express and with
/// all sizes that cannot follow a free batch.
void save(const std::filesystem::path& path, nn::Module& network, const ExportOptions& options);

struct TrainingExportOptions {
  Shape input = {};  // with the batch
  DType dtype = DType::f32;
  TensorSpec target = {};
  int opset = 17;  // at least 16
  std::map<std::string, Tensor> weights = {};
  std::uint64_t seed = 0;
  optim::MinimizeOptions minimize = {};
};

/// Writes one step of training as an ordinary graph. Its inputs are "input" and "target", and every variable that the
/// step changes, with its first value as default: parameters, running statistics and the optimizer's variables under
/// their names ("optim.<parameter>.<state>"), and the learning rate "optim.lr". Its outputs are "loss", and
/// "<variable>.updated" for each of these variables, which is the input of the next step. TrainingInfoProto lists them
/// as update_binding too. The batch is fixed. Throws as `save`; dropout, CTC and what else cannot be written are
/// NotSupported.
void save_training(const std::filesystem::path& path, nn::Module& network, const Loss& loss,
                   const optim::Optimizer& optimizer, const TrainingExportOptions& options);

}  // namespace onnx
}  // namespace concord
