// Which products matrix units take, and in which precision. Used by gemm_mma, gemm_wgmma, gemm_tma and gemm_wave.
#pragma once

#include <string_view>

#include "concord/opencl/gemm.hpp"

namespace concord::opencl {

/// Whether a product is so large that matrix units pay for being fed.
[[nodiscard]] bool is_for_matrix_units(const Gemm& gemm);

/// Whether gemm is within what the kernels can index and read.
[[nodiscard]] bool matrix_units_accept(const Gemm& gemm);

/// The PRECISION of NVIDIA's kernel files: fp32 is split.
[[nodiscard]] std::string_view matrix_precision(Precision precision);

}  // namespace concord::opencl
