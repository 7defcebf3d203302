// The accuracy of scalar functions, activations and losses of a logit. tests/ops/accuracy.cpp checks it on every
// device; docs/functions.md lists it.
#pragma once

#include <span>

#include "concord/graph/scalar_functions.hpp"

namespace concord {

/// Errors below kUnderflow, of second derivatives kCurveUnderflow, do not count: what is below 2^-126, and what is made
/// of it, may be 0.
inline constexpr double kUnderflow = 0x1p-122, kCurveUnderflow = 0x1p-112;

[[nodiscard]] std::span<const FunctionAccuracy> function_accuracy();

}  // namespace concord
