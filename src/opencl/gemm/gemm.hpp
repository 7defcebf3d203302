// The kernel for a product. Used by matmul, convolutions and recurrent layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// The kernel for a product: the implementation that the option gemm of CONCORD_DEBUG names where that accepts it;
/// the choice that a tuning table holds (tuning/table.hpp) where it serves; else the planned one. `label` starts the
/// kernel's name ("matmul").
[[nodiscard]] std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label);

/// A product as launches of a larger kernel. Where k is cut, what a part gives stays apart: the launch that reads the
/// product adds up `parts` matrices, each (batch, m, n).
struct PartialProduct {
  std::vector<StagedKernel::AnyStage> stages;
  BufferArgument result;  // in the workspace
  std::int64_t parts;
  std::size_t workspace;  // bytes in all
};
/// gemm.c and the begin of the workspace are this function's to choose; no epilogue.
[[nodiscard]] PartialProduct prepare_partial_gemm(Context& context, Gemm gemm, std::string_view label);

}  // namespace concord::opencl
