// The problem sizes and precisions for matrix cores. Used by mma, wave, hopper/wgmma and hopper/tma.
#pragma once

#include <string_view>

#include "concord/opencl/gemm/problem.hpp"

namespace concord::opencl {

/// Whether a matrix multiplication is large enough to benefit from matrix cores.
[[nodiscard]] bool is_for_matrix_cores(const Gemm& gemm);

/// Why the kernels cannot index or read the product's operands; empty where they can.
[[nodiscard]] std::string_view matrix_cores_refusal(const Gemm& gemm);

/// The value of PRECISION in NVIDIA's kernel files: fp32 is split.
[[nodiscard]] std::string_view matrix_precision(Precision precision);

}  // namespace concord::opencl
