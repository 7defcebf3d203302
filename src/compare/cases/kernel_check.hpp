// find_fault: runs the operators of any graph on one device and compares each with the host in double precision. Used
// by `concord doctor` to check kernel alternatives one at a time.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "concord/compile/program.hpp"

namespace concord {

/// A result that is wrong for the operator's inputs.
struct KernelFault {
  std::string op, kernel, shapes;
  double error = 0;      // largest absolute difference
  double tolerance = 0;  // largest error by rounding (tolerance.hpp)
  /// "conv2d by the kernel … is wrong: error 1.2, allowed 1e-05 (f32 [2, 3] -> f32 [2, 4])"
  [[nodiscard]] std::string str() const;
};

/// Returns the first fault among the operators that `outputs` need: first unfused, then as fused, on the values that
/// this device computed before. Skips operators without a reference (reference64/evaluate.hpp). `inputs` are the inputs
/// of the graph by name. Throws the errors of compiling and running.
[[nodiscard]] std::optional<KernelFault> find_fault(const Graph& graph, std::span<const Value> outputs,
                                                    const std::map<std::string, Tensor>& inputs,
                                                    const DevicePtr& device, Precision precision);

}  // namespace concord
