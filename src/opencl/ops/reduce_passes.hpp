// The passes in which a reduction runs, and how lanes share a row of one. Used by reduce.cpp and grouped_sums.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::opencl {

/// src (outer, length, inner) → dst (outer, parts, inner). With a `run`: src (length / run, outer, run) → dst (outer).
/// `width` neighbouring values of a row are read together.
struct ReducePass {
  std::int64_t outer = 1, length = 1, inner = 1, parts = 1, run = 0, width = 1;
  [[nodiscard]] std::int64_t outputs() const { return outer * parts * inner; }
  [[nodiscard]] std::int64_t part() const { return round_up(divide_up(length, parts), width); }
  /// Groups of neighbouring rows.
  [[nodiscard]] std::int64_t rows() const { return outer * parts * divide_up(inner, 32); }
};

/// The lanes of a pass of a GPU.
[[nodiscard]] Lanes lanes_of(const Context& context, const ReducePass& pass);
/// Reads of a lane that are in flight at once.
[[nodiscard]] std::uint64_t unroll_of(const ReducePass& pass, const Lanes& lanes);
/// The passes of a reduction over these axes, innermost first.
[[nodiscard]] std::vector<ReducePass> passes_of(const Context& context, const Shape& src, ops::ReduceKind kind,
                                                const std::vector<std::size_t>& axes);

}  // namespace concord::opencl
