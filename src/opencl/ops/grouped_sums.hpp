// Small sums of several tensors in few launches (cl_kernels/ops/grouped_sums.cl): Device::groups_sum and prepare_sums.
#pragma once

#include <memory>
#include <span>

#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Whether the sum of at most 2^20 elements takes one pass of a GPU, and its epilogue has no further operands.
[[nodiscard]] bool has_grouped_sum(const Context& context, const KernelRequest& sum);
/// A launch for every eight of these.
[[nodiscard]] std::unique_ptr<Kernel> prepare_grouped_sums(Context& context, std::span<const KernelRequest> sums);

}  // namespace concord::opencl
