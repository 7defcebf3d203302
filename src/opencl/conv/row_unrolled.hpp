// Images with few channels, unrolled along their rows into images that lie channels-last.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

[[nodiscard]] bool conv_lines_serve(const ops::ConvSizes& sizes);
[[nodiscard]] Gemm conv_lines_forward_gemm(Context& context, const ops::ConvSizes& sizes, Precision precision);
/// The product, and the launch after it.
struct ConvLinesGradient {
  Gemm gemm;
  Stage last;
};
[[nodiscard]] ConvLinesGradient conv_lines_backward_weights_gemm(Context& context, const ops::ConvSizes& sizes,
                                                                 Precision precision);

}  // namespace concord::opencl
