// float64: the results of operators in double precision, computed by plain loops on the host. The inputs are the f32
// values of a device, so a correct device's result differs by its rounding alone. Used by compare with
// Reference::float64.
#pragma once

#include <optional>
#include <vector>

#include "concord/compile/program.hpp"

namespace concord::float64 {

/// Values in row-major order. Those of an i32 or u8 tensor are exact.
using Values = std::vector<double>;
/// The values of each output, or nothing if there is no reference. If an output is not f32, its values are empty,
/// unless they are the indices of the largest values.
using Results = std::optional<std::vector<Values>>;

/// Computes the results of an operator from `node.inputs`. Of `node.results` it reads only the specs. There is no
/// reference for element types other than f32, i32 and u8, for operators outside the families below, and for forms that
/// a family declines.
[[nodiscard]] Results evaluate(const ReplayedNode& node);

/// What tolerance_of takes for the results of the node: its f32 results that have a reference are rounded from that,
/// and the others are its own.
[[nodiscard]] std::vector<Tensor> right_results(const ReplayedNode& node, const std::vector<Values>& exact);

}  // namespace concord::float64
