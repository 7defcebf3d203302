// The launches that pack the operands of a matrix multiplication into planes (cl_kernels/gemm/hopper/pack.cl) and
// describe them to the copy engine.
#pragma once

#include "concord/opencl/gemm/hopper/split_operands.hpp"

namespace concord::opencl {

/// Of the tensor maps of a product's two operands.
inline constexpr std::size_t kMapsBytes = 2 * sizeof(TensorMap);

/// Adds to gemm.before the stages that pack both operands into the workspace and write their tensor maps to `maps`, the
/// left one first. Returns arguments of the GEMM kernel: for a scaled problem the flags and the scales of the operands.
[[nodiscard]] std::vector<Argument> pack_planes(Context& context, Gemm& gemm, const PlaneForm& form,
                                                const PlaneBox& box, const KeptArgument& maps);

}  // namespace concord::opencl
