// The scales with which the operands of a product become fp16 numbers (cl_kernels/gemm/hopper/measure.cl): a scale
// for each row whose k is adjacent and for each image of a forward product, one for the whole of any other operand.
#pragma once

#include "concord/opencl/gemm/hopper/split_operands.hpp"

namespace concord::opencl {

/// Where an operand's inverse scales lie: of a batch `batch_scales` after those of the one before, of its lines or
/// images `step` after each other.
struct OperandScales {
  BufferArgument inverses;
  std::int64_t batch_scales, step;
  /// SCALE_OPERAND of gemm/hopper/scales.h.
  [[nodiscard]] std::vector<Argument> arguments() const;
};

struct PlaneScales {
  BufferArgument mixture;  // tells whether the factors are too mixed for fp16
  OperandScales left, right;
  std::vector<Stage> stages;  // that fill these
  std::size_t end;            // of what they take of the workspace
};
/// In the workspace from `begin` on, a multiple of 256.
[[nodiscard]] PlaneScales measure_operands(Context& context, const Gemm& gemm, const PlaneForm& form,
                                           std::size_t begin);

}  // namespace concord::opencl
