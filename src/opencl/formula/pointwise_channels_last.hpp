// Pointwise operators on images that lie channels-last. Used by pointwise.cpp.
#pragma once

#include <optional>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::opencl {

/// Nothing where no input lies so, or where the kernel does not serve.
[[nodiscard]] std::optional<PreparedKernel> prepare_pointwise_channels_last(Context& context, const ops::Pointwise& op,
                                                                            const KernelRequest& request);

}  // namespace concord::opencl
