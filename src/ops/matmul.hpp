// Matmul: batched matrix multiplication; either operand may be transposed.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// src (…, M, K) × weights (…, K, N) → (…, M, N), f32. With `transpose_a` src is (…, K, M); with `transpose_b` weights
/// is (…, N, K). Leading (batch) dimensions are equal, or one operand has none and is used for every batch.
class Matmul final : public Operator {
 public:
  Matmul(bool transpose_a, bool transpose_b) : transpose_a_(transpose_a), transpose_b_(transpose_b) {}
  [[nodiscard]] std::string_view name() const override { return "matmul"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] bool transpose_a() const { return transpose_a_; }
  [[nodiscard]] bool transpose_b() const { return transpose_b_; }

 private:
  bool transpose_a_, transpose_b_;
};

/// The sizes of one matrix multiplication, for backends. The batch is 1 for plain matrices.
struct MatmulSizes {
  std::int64_t batch_a, batch_b, batch, m, n, k;
};
[[nodiscard]] MatmulSizes sizes_of(const Matmul& op, const Shape& a, const Shape& b);

}  // namespace ops

/// a × b over the last two dimensions; see ops::Matmul.
Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);

}  // namespace concord
