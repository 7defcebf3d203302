// Sums of several tensors in few launches, for Device::group_kind and prepare_group.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "concord/device/device.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Sums by channel (channel_sums.hpp), and sums of at most 2^20 row-major elements that take one pass of a GPU and
/// whose epilogue has no further operands (cl_kernels/ops/grouped_sums.cl).
[[nodiscard]] std::optional<GroupKind> kind_of_sum(Context& context, const KernelRequest& sum);
/// A launch for every eight of these; two for every eight sums by channel where the GPU is not one of NVIDIA.
[[nodiscard]] std::unique_ptr<Kernel> prepare_grouped_sums(Context& context, std::span<const KernelRequest> sums);

}  // namespace concord::opencl
