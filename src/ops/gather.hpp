// Gather: reads rows of a table by index. Its gradient, scatter-add, has a fixed order, so repeated indices always give
// the same sum.
#pragma once

#include <string_view>

#include "concord/core/export.hpp"
#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// table (R, …) of any type, indices i32 (I…) → (I…, …): the rows of the table at the indices. An index outside [0, R)
/// gives NaN in an f32 table and 0 in others. Row `padding`, if >= 0, gets no gradient.
class Gather final : public Operator {
 public:
  explicit Gather(std::int64_t padding = -1) : padding_(padding) {}
  [[nodiscard]] std::string_view name() const override { return "gather"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::int64_t padding() const { return padding_; }

 private:
  std::int64_t padding_;
};

/// src f32 (I…, …), indices i32 (I…) → (rows, …): row r is the sum of the rows of src with index r, in their order.
/// Indices outside [0, rows), and the index `padding`, are skipped. A third input, f32 of the shape of the result, is
/// added to these sums; compile makes such an operator of an addition (join_scatters).
class ScatterAdd final : public Operator {
 public:
  explicit ScatterAdd(std::int64_t rows, std::int64_t padding = -1) : rows_(rows), padding_(padding) {}
  [[nodiscard]] std::string_view name() const override { return "scatter_add"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] bool in_place(std::size_t input, std::size_t /*output*/) const override { return input == kBase; }
  static constexpr std::size_t kBase = 2;  // the number of that input
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t padding() const { return padding_; }

 private:
  std::int64_t rows_, padding_;
};

/// 1 if the index is in [0, size), else 0. Throws NotSupported if f32 cannot represent every such index exactly.
[[nodiscard]] Scalar is_inside(std::string_view op, const Scalar& index, std::int64_t size);

}  // namespace ops

/// See ops::Gather.
Value gather(Value table, Value indices, std::int64_t padding = -1);
/// See ops::ScatterAdd.
Value scatter_add(Value src, Value indices, std::int64_t rows, std::int64_t padding = -1);

}  // namespace concord
