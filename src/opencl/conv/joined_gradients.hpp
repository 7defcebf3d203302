// Gradients of the weights of several convolutions in one launch, for Device::gradient_kind and kernels of groups.
#pragma once

#include <optional>
#include <span>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/operator_group.hpp"

namespace concord::opencl {

/// Gradients that the copy engine's products make of images that lie channels-last, if their tiles are fewer than the
/// compute units: alone they are cut into parts, whose addition and launch take as long as the products.
[[nodiscard]] std::optional<GroupKind> kind_of_weights_gradient(Context& context, const Operator& op,
                                                                std::span<const TensorSpec> inputs,
                                                                Precision precision);
/// One kernel for all gradients of a group; nothing where some are none of that kind, or a launch each is faster.
[[nodiscard]] std::optional<PreparedKernel> prepare_weights_gradients(Context& context, const ops::OperatorGroup& group,
                                                                      const KernelRequest& request);

}  // namespace concord::opencl
