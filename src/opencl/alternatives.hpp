// The names of the kernel alternatives that a device has now. Used by OpenClDevice.
#pragma once

#include <vector>

#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// The kinds of kernels last: what a narrower alternative explains is not theirs.
[[nodiscard]] std::vector<OpenClAlternatives::Name> alternative_names(const Context& context);

}  // namespace concord::opencl
