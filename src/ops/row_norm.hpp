// Normalisation of rows, for layer, RMS, group and instance normalisation. Scale and shift are separate pointwise
// operators. nn/ uses it.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// The dimensions of src from `axis` on form one row of K values; the dimensions before it, (R…), count the rows.
/// Centred: dst = (src − mean)·rstd with rstd = 1/√(variance + ε) and the variance divided by K (Ba et al., "Layer
/// Normalization", 2016). Not centred: dst = src·rstd with rstd = 1/√(mean of squares + ε) (Zhang and Sennrich, "Root
/// Mean Square Layer Normalization", 2019). Outputs: dst, rstd (R…) and, if centred, mean (R…).
class RowNorm final : public Operator {
 public:
  RowNorm(std::size_t axis, bool centred, float epsilon) : axis_(axis), centred_(centred), epsilon_(epsilon) {}
  [[nodiscard]] std::string_view name() const override { return centred_ ? "row_norm" : "row_norm_rms"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] bool centred() const { return centred_; }
  [[nodiscard]] float epsilon() const { return epsilon_; }

 private:
  std::size_t axis_;
  bool centred_;
  float epsilon_;
};

/// diff_dst, dst, rstd → diff_src = rstd·(diff_dst − mean(diff_dst) − dst·mean(diff_dst·dst)); without the first mean
/// if the forward operator is not centred.
class RowNormBackward final : public Operator {
 public:
  RowNormBackward(std::size_t axis, bool centred) : axis_(axis), centred_(centred) {}
  [[nodiscard]] std::string_view name() const override {
    return centred_ ? "row_norm_backward" : "row_norm_rms_backward";
  }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] bool centred() const { return centred_; }

 private:
  std::size_t axis_;
  bool centred_;
};

/// A tensor divided at `axis` into rows.
struct RowSizes {
  std::int64_t rows, length;
};
[[nodiscard]] RowSizes row_sizes(const Shape& src, std::size_t axis);

}  // namespace ops

struct RowNormResult {
  Value dst, rstd, mean;  // row_norm_rms gives no mean
};
/// Normalises the dimensions from `axis` on; see ops::RowNorm.
RowNormResult row_norm(Value x, std::int64_t axis, float epsilon = 1e-5F);
RowNormResult row_norm_rms(Value x, std::int64_t axis, float epsilon = 1e-5F);

}  // namespace concord
