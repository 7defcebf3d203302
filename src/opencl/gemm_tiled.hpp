// The product for GPUs in plain OpenCL C (cl_kernels/gemm_tiled.cl), as an implementation of `gemm`.
#pragma once

#include "concord/opencl/gemm.hpp"

namespace concord::opencl {

[[nodiscard]] bool tiled_accepts(const Context& context, const Gemm& gemm);
[[nodiscard]] double tiled_seconds(const Context& context, const Gemm& gemm);  // expected
[[nodiscard]] std::unique_ptr<Kernel> prepare_tiled(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> tiled_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_tiled_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                                           std::string_view label);

}  // namespace concord::opencl
