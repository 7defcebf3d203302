// Pointwise operators on images in channels-last layout. Used by pointwise.cpp.
#pragma once

#include <optional>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::opencl {

/// Nothing where no input has this layout, or where the kernel does not support the operator.
[[nodiscard]] std::optional<PreparedKernel> prepare_pointwise_channels_last(Context& context, const ops::Pointwise& op,
                                                                            const KernelRequest& request);

}  // namespace concord::opencl
