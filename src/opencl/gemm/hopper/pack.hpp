// The launches that pack a product's operands into planes (cl_kernels/gemm/hopper/pack.cl) and tell the copy engine
// of them.
#pragma once

#include "concord/opencl/gemm/hopper/split_operands.hpp"

namespace concord::opencl {

/// Adds to gemm.before the stages that pack both operands into the workspace and write their tensor maps. What the
/// multiplying kernel is told: the place of the maps, the left one first, and where the product is scaled the flags and
/// the operands' scales.
struct PackedPlanes {
  BufferArgument maps;
  std::vector<Argument> scales;
};
[[nodiscard]] PackedPlanes pack_planes(Context& context, Gemm& gemm, const PlaneForm& form, const PlaneBox& box);

}  // namespace concord::opencl
