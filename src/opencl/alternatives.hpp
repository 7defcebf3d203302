// The names of the kernel alternatives that a device has at present. Used by OpenClDevice.
#pragma once

#include <vector>

#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// The kinds of kernels (for CPUs, for GPUs) come last: a fault that a narrower alternative explains is not a fault of
/// the kind.
[[nodiscard]] std::vector<OpenClAlternatives::Name> alternative_names(const Context& context);

}  // namespace concord::opencl
