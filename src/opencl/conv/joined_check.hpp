// The check of gradients of weights in one launch.
#pragma once

#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Computes the gradients of the weights of three small convolutions in one launch, with k cut and whole, and compares
/// them with the host's. Their sums are whole numbers, which the precision, of 16 bits, computes exactly. Logs a wrong
/// result and a failure.
[[nodiscard]] bool gradients_are_right_together(Context& context, Precision precision);

}  // namespace concord::opencl
