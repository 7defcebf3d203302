// The launches that pack the operands of a matrix multiplication into planes (cl_kernels/gemm/hopper/pack.cl) and
// describe them to the copy engine.
#pragma once

#include "concord/opencl/gemm/hopper/split_operands.hpp"

namespace concord::opencl {

/// Adds to gemm.before the stages that pack both operands into the workspace and write their tensor maps, which the
/// launch keeps. Returns the arguments of the GEMM kernel: the position of the maps, the left one first, and for a
/// scaled problem the flags and the scales of the operands.
struct PackedPlanes {
  KeptArgument maps;
  std::vector<Argument> scales;
};
[[nodiscard]] PackedPlanes pack_planes(Context& context, Gemm& gemm, const PlaneForm& form, const PlaneBox& box);

}  // namespace concord::opencl
