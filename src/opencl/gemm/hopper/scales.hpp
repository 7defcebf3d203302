// The scales that convert the operands of a matrix multiplication to fp16 (cl_kernels/gemm/hopper/measure.cl): one for
// each row whose k is adjacent, one for each image of a forward pass, one for any other operand.
#pragma once

#include "concord/opencl/gemm/hopper/split_operands.hpp"

namespace concord::opencl {

/// The position of an operand's inverse scales. The scales of consecutive batches are `batch_scales` apart, those of
/// consecutive lines or images `step` apart.
struct OperandScales {
  BufferArgument inverses;
  std::int64_t batch_scales, step;
  /// SCALE_OPERAND, or SCALE_MEMORY, of gemm/hopper/scales.h.
  [[nodiscard]] std::vector<Argument> arguments() const;
};

struct PlaneScales {
  BufferArgument mixture;  // whether the magnitudes are too mixed for fp16
  OperandScales left, right;
  std::vector<Stage> stages;  // that write these values
  std::size_t end;            // of their part of the workspace
};
/// The scales lie in the workspace from `begin` on, a multiple of 256.
[[nodiscard]] PlaneScales measure_operands(Context& context, const Gemm& gemm, const PlaneForm& form,
                                           std::size_t begin);

}  // namespace concord::opencl
