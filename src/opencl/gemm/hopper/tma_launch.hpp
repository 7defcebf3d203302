// Launches of gemm/hopper/tma.cl.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "concord/opencl/gemm/hopper/tma_plan.hpp"

namespace concord::opencl {

/// Up to 4 products in one launch, each with its plan. All plans have one tile. Several products read
/// operands of 16 bits where the copy engine takes them, have one epilogue, and either none of them is cut or all their
/// works fit on the device at once (can_join_parts). They read the same operands and write disjoint parts of one result,
/// or kernels of the device have one memory for all (memory_definitions).
[[nodiscard]] std::unique_ptr<Kernel> prepare_tma_launch(Context& context, std::span<const Gemm> products,
                                                         std::span<const TmaPlan> plans, std::string_view label);

}  // namespace concord::opencl
