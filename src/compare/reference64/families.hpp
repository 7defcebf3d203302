// The operator families that have a reference in double precision, a file each. Each takes the operators it knows and
// gives nothing for others.
#pragma once

#include <cstddef>

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/graph/expression.hpp"

namespace concord::float64 {

/// The numbers of a tensor of f32, i32 or u8.
[[nodiscard]] Values doubles(const Tensor& tensor);
/// The elements of an output, zeros.
[[nodiscard]] Values zeros(const Tensor& result);

/// Whether there are numbers that some devices take for 0, so that they see other places of the largest.
[[nodiscard]] bool holds_subnormals(const Values& values);
/// Numbers of a shape, in row-major order.
struct Numbers {
  Values values;
  Shape shape;
};
/// The results of the expression over operands that broadcast to the output.
[[nodiscard]] std::vector<Values> values_of(const Expression& expression, std::span<const Numbers> operands,
                                            const Shape& output);

[[nodiscard]] Results all_finite(const ReplayedNode& node);
[[nodiscard]] Results pointwise(const ReplayedNode& node);
[[nodiscard]] Results fused(const ReplayedNode& node);
[[nodiscard]] Results prologued(const ReplayedNode& node);
[[nodiscard]] Results copy(const ReplayedNode& node);
[[nodiscard]] Results matmul(const ReplayedNode& node);
[[nodiscard]] Results conv(const ReplayedNode& node);
[[nodiscard]] Results pool(const ReplayedNode& node);
[[nodiscard]] Results normalise(const ReplayedNode& node);
[[nodiscard]] Results softmax(const ReplayedNode& node);
[[nodiscard]] Results reduce(const ReplayedNode& node);
[[nodiscard]] Results ctc(const ReplayedNode& node);
[[nodiscard]] Results gather(const ReplayedNode& node);
[[nodiscard]] Results along(const ReplayedNode& node);
[[nodiscard]] Results attention(const ReplayedNode& node);
[[nodiscard]] Results recurrent(const ReplayedNode& node);
[[nodiscard]] Results random(const ReplayedNode& node);

}  // namespace concord::float64
