// The product for CPUs (cl_kernels/gemm_panel.cl), as an implementation of `gemm`.
#pragma once

#include "concord/opencl/gemm.hpp"

namespace concord::opencl {

[[nodiscard]] std::unique_ptr<Kernel> prepare_panel(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> panel_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_panel_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                                           std::string_view label);

}  // namespace concord::opencl
