// OperatorCase: one operator of a network with its inputs and what devices made of them, in a file, so that a
// difference can be looked at without the training that led to it. Written by `concord compare`, run by `concord
// replay`.
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
  bool fused = false;          // as fusion makes it (CompileOptions::keep_fused), not the operator by itself (keep_all)
  std::string device, kernel;  // that made `results`
  std::vector<std::string> outputs = {};            // names of the results
  io::TensorMap inputs = {};                        // by the names of values and variables
  std::vector<Tensor> expected = {};                // of the reference
  std::vector<Tensor> results = {};                 // of the device
  std::vector<double> tolerances = {};              // of each result
  std::map<std::string, std::string> network = {};  // what the graph is built from, as the writer of the file puts it
};

/// The metadata have one JSON document, "concord.case", with all that is no tensor; the tensors are "input/NAME",
/// "expected/NAME" and "result/NAME". Throws IoError.
void write_case(const std::filesystem::path& path, const OperatorCase& operator_case);
/// Throws IoError, and FormatError when the file is no case.
[[nodiscard]] OperatorCase read_case(const std::filesystem::path& path);

/// What one device makes of the inputs of a case.
struct CaseReplay {
  struct Result {
    std::string name;
    double error = 0;       // largest absolute difference from the reference's result
    double tolerance = 0;   // what rounding explains
    double case_error = 0;  // of the device that the case was written for
    double from_case = 0;   // largest difference from that device's result
  };
  std::string op, kernel, shapes;
  std::vector<Result> results;
  [[nodiscard]] bool diverges() const;
  /// "conv1/conv2d diverges on opencl:0"; empty where it does not.
  [[nodiscard]] std::string diverging(const OperatorCase& operator_case, const DeviceInfo& device) const;
  /// What `concord replay --json` prints: the case, the device, and of each result the errors.
  [[nodiscard]] std::string json(const OperatorCase& operator_case, const DeviceInfo& device) const;
};

/// Runs the operator of a case alone. `graph` is the training step it was taken from, with this loss. Throws
/// ArgumentError when the graph, or what fusion makes of it for this device, has no such operator, FormatError when its
/// results are not those of the case in number, type or shape, and ShapeError where its inputs are not.
[[nodiscard]] CaseReplay replay(const OperatorCase& operator_case, const Graph& graph, Value loss,
                                const DevicePtr& device, Precision precision);

}  // namespace concord
