// Kernels of several operators: of a formula and the operator that reads its result, used by Kernels (kernels.cpp), and
// what kernels of groups are asked for.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/operator_group.hpp"

namespace concord::opencl {

/// For an operator with a prologue whose kernel does not apply it. `formula` computes the prologue of input 0 and the
/// inputs from `first_extra` on. Its result, of `bytes` bytes, lies in the workspace, where `reader` reads it as its
/// input 0. Both are StagedKernels of row-major operands.
[[nodiscard]] std::unique_ptr<Kernel> joined_kernel(Context& context, const Kernel& formula, const Kernel& reader,
                                                    std::size_t first_extra, std::size_t bytes);

/// The requests of the members of a group.
[[nodiscard]] std::vector<KernelRequest> requests_of(const ops::OperatorGroup& group, const KernelRequest& request);

}  // namespace concord::opencl
