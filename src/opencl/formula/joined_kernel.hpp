// A formula and the operator that reads its result, one behind the other, as one kernel. Used by Kernels (kernels.cpp).
#pragma once

#include <cstddef>
#include <memory>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// For an operator with a prologue whose kernel does not apply it. `formula` computes the prologue of input 0 and the
/// inputs from `first_extra` on. Its result, of `bytes` bytes, lies in the workspace, where `reader` reads it as its
/// input 0. Both are StagedKernels of row-major operands.
[[nodiscard]] std::unique_ptr<Kernel> joined_kernel(Context& context, const Kernel& formula, const Kernel& reader,
                                                    std::size_t first_extra, std::size_t bytes);

}  // namespace concord::opencl
