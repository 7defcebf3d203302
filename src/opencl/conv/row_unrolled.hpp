// Row-unrolled: convolutions of images with few channels as GEMMs on unrolled images that lie channels-last.
#pragma once

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

/// Inputs src and row_unrolled_filters of Gemm::a.filter_channels.
[[nodiscard]] Gemm row_unrolled_forward_gemm(Context& context, const ops::ConvSizes& sizes, Precision precision,
                                             const EpilogueText& epilogue);
/// The product of src and diff_dst, and the launch after it.
struct RowUnrolledGradient {
  Gemm gemm;
  Stage last;
};
[[nodiscard]] RowUnrolledGradient row_unrolled_backward_weights_gemm(Context& context, const ops::ConvSizes& sizes,
                                                                     Precision precision);

}  // namespace concord::opencl
