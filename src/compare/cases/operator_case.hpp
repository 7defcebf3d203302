// OperatorCase: one operator of a network in a file, with its inputs and the results of two devices. A case shows a
// difference without the training that led to it. `concord compare` writes it, `concord replay` runs it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"
#include "concord/io/safetensors.hpp"

namespace CONCORD_PUBLIC concord {

struct OperatorCase {
  std::string node, op, attributes;
  /// The kernel as fused (Retain::fused), else the unfused operator (Retain::all).
  bool fused = false;
  std::string device, kernel;                       // device and kernel that computed `results`
  std::vector<std::string> outputs = {};            // names of the results
  io::TensorMap inputs = {};                        // by the names of values and variables
  std::vector<Tensor> expected = {};                // results of the reference
  std::vector<Tensor> results = {};                 // results of the device
  std::vector<double> tolerances = {};              // one for each result
  std::map<std::string, std::string> network = {};  // the settings that build the graph, from the writer of the file
};

/// Writes a case as safetensors. The metadata contain one JSON document, "concord.case", with everything except the
/// tensors. The tensors are "input/NAME", "expected/NAME" and "result/NAME". Throws IoError.
void write_case(const std::filesystem::path& path, const OperatorCase& operator_case);
/// Reads a case. Throws IoError, and FormatError if the file is not a case.
[[nodiscard]] OperatorCase read_case(const std::filesystem::path& path);

/// The results of one device on the inputs of a case.
struct CaseReplay {
  struct Result {
    std::string name;
    double error = 0;       // largest absolute difference from the reference's result
    double tolerance = 0;   // largest error that rounding can cause
    double case_error = 0;  // error of the device in the case
    double from_case = 0;   // largest difference from the result of the device in the case
  };
  std::string op, kernel, shapes;
  std::vector<Result> results;
  [[nodiscard]] bool diverges() const;
  /// "conv1/conv2d diverges on opencl:0". Empty if no result diverges.
  [[nodiscard]] std::string diverging(const OperatorCase& operator_case, const DeviceInfo& device) const;
  /// The output of `concord replay --json`: the case, the device and the errors of each result.
  [[nodiscard]] std::string json(const OperatorCase& operator_case, const DeviceInfo& device) const;
};

/// Runs the operator of a case alone. `graph` is the training step of the case and `loss` its loss. Throws
/// ArgumentError if the graph, or the fused graph on this device, does not have the operator. Throws FormatError if the
/// number, types or shapes of its results differ from the case, ShapeError if its inputs differ.
[[nodiscard]] CaseReplay replay(const OperatorCase& operator_case, const Graph& graph, Value loss,
                                const DevicePtr& device, Precision precision);

}  // namespace concord
