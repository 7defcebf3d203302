// float64: what operators give in double precision, by plain loops on the host. Inputs are the f32 numbers that a
// device had, so that a result differs from a correct device's by its rounding alone. Used by compare with
// Reference::float64.
#pragma once

#include <optional>
#include <vector>

#include "concord/compile/program.hpp"

namespace concord::float64 {

/// Numbers in row-major order; an i32 or u8 tensor's are exact.
using Values = std::vector<double>;
/// One an output, or nothing where there is no reference. Of the outputs that are not f32 those are
/// there that tell the places of largest values; others are empty.
using Results = std::optional<std::vector<Values>>;

/// The results of an operator from `node.inputs`; of `node.results` only the specs are looked at. There is no reference
/// for operators with other element types than f32, i32 and u8, for those that no family below knows, and for forms
/// that a family declines.
[[nodiscard]] Results evaluate(const ReplayedNode& node);

}  // namespace concord::float64
