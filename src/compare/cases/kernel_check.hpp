// find_fault: the operators of any graph on one device, each held against the host in double precision. Used by
// `concord doctor` to check kernels one way at a time.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "concord/compile/program.hpp"

namespace concord {

/// A result that is not what the operator's inputs give.
struct KernelFault {
  std::string op, kernel, shapes;
  double error = 0;      // largest absolute difference
  double tolerance = 0;  // what rounding explains (tolerance.hpp)
  /// "conv2d by the kernel … is wrong: error 1.2, allowed 1e-05 (f32 [2, 3] -> f32 [2, 4])"
  [[nodiscard]] std::string str() const;
};

/// The first fault among the operators that `outputs` need, each by itself, then as fusion makes it, on what this
/// device computed before it; operators without a reference (reference64/evaluate.hpp) are passed over. `inputs` are the
/// graph's, by name. Throws what compiling and running throw.
[[nodiscard]] std::optional<KernelFault> find_fault(const Graph& graph, std::span<const Value> outputs,
                                                    const std::map<std::string, Tensor>& inputs,
                                                    const DevicePtr& device, Precision precision);

}  // namespace concord
