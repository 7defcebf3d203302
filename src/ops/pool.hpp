// Max and average pooling over signals, images and volumes, their gradients, and the way back of max pooling by its
// indices. Windows have a fixed size, or cut the source into as many parts as are wanted (adaptive).
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/spatial.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

struct PoolOptions {
  std::size_t rank = 2;  // dimensions of space, 1 to 3
  Spatial kernel{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial padding{0, 0, 0};
  Spatial dilation{1, 1, 1};  // max only
  bool ceil_mode = false;
  bool count_include_pad = true;  // average only
  std::int64_t divisor = 0;       // average only: what sums are divided by; 0: the pixels counted
  /// The sizes of dst when they are given: window o along an axis is then the pixels [⌊o·size/dst⌋, ⌈(o+1)·size/dst⌉),
  /// and what stands above, but for the rank and the divisor, means nothing. Zeros: windows as above.
  Spatial adaptive{0, 0, 0};
  [[nodiscard]] bool is_adaptive() const { return adaptive[2] != 0; }
  [[nodiscard]] std::string str() const;
};

struct PoolSizes {
  std::int64_t n, c;
  Spatial src, dst;
  PoolOptions options;
};
/// Output sizes as PyTorch computes them. Throws ShapeError.
[[nodiscard]] PoolSizes pool_sizes(const Shape& src, const PoolOptions& options);

/// Common part of pooling and its gradients.
class PoolFamily : public Operator {
 public:
  explicit PoolFamily(PoolOptions options) : options_(options) {}
  [[nodiscard]] std::string attributes() const override { return options_.str(); }
  [[nodiscard]] const PoolOptions& options() const { return options_; }

 private:
  PoolOptions options_;
};

/// src (N, C, …) → dst (N, C, …) and indices, i32 of the same shape: the winner's place in its channel, row-major; the
/// first winner at a tie; a NaN wins. A window without a pixel gives -infinity and -1.
class MaxPool final : public PoolFamily {
 public:
  using PoolFamily::PoolFamily;
  [[nodiscard]] std::string_view name() const override { return "max_pool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
};

/// diff_dst, indices → diff_src of shape `src`.
class MaxPoolBackward final : public PoolFamily {
 public:
  MaxPoolBackward(PoolOptions options, Shape src) : PoolFamily(options), src_(std::move(src)) {}
  [[nodiscard]] std::string_view name() const override { return "max_pool_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options().str() + " src " + src_.str(); }
  [[nodiscard]] const Shape& src() const { return src_; }

 private:
  Shape src_;
};

/// src (N, C, …) → dst (N, C, …).
class AvgPool final : public PoolFamily {
 public:
  using PoolFamily::PoolFamily;
  [[nodiscard]] std::string_view name() const override { return "avg_pool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
};

/// diff_dst → diff_src of shape `src`.
class AvgPoolBackward final : public PoolFamily {
 public:
  AvgPoolBackward(PoolOptions options, Shape src) : PoolFamily(options), src_(std::move(src)) {}
  [[nodiscard]] std::string_view name() const override { return "avg_pool_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options().str() + " src " + src_.str(); }
  [[nodiscard]] const Shape& src() const { return src_; }

 private:
  Shape src_;
};

/// src (N, C, …), indices i32 of its shape → dst of shape `dst`: each value of src at its place in its channel, the
/// last one where several have the same place, 0 elsewhere. Places outside the channel are skipped.
class MaxUnpool final : public Operator {
 public:
  explicit MaxUnpool(Shape dst) : dst_(std::move(dst)) {}
  [[nodiscard]] std::string_view name() const override { return "max_unpool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  /// As PyTorch's: every value of src gets the gradient of its place, also one that another was written over.
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return dst_.str(); }

 private:
  Shape dst_;
};

/// diff_dst (N, C, …), indices i32 (N, C, …) → the values of diff_dst at these places of its channels; 0 for places
/// outside. The gradient of MaxUnpool and of MaxPoolBackward.
class MaxUnpoolBackward final : public Operator {
 public:
  [[nodiscard]] std::string_view name() const override { return "max_unpool_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
};

}  // namespace ops

/// Of max pooling over `Rank` dimensions of space.
template <std::size_t Rank>
struct MaxPoolNdOptions {
  using Sizes = std::array<std::int64_t, Rank>;
  Sizes kernel = ops::everywhere<Rank>(2);
  Sizes stride = ops::everywhere<Rank>(0);  // 0: the kernel's size
  Sizes padding = ops::everywhere<Rank>(0);
  Sizes dilation = ops::everywhere<Rank>(1);
  bool ceil_mode = false;

  operator ops::PoolOptions() const {  // NOLINT(google-explicit-constructor)
    return {.rank = Rank,
            .kernel = ops::spatial(kernel, 1),
            .stride = ops::spatial(stride, 1),
            .padding = ops::spatial(padding, 0),
            .dilation = ops::spatial(dilation, 1),
            .ceil_mode = ceil_mode};
  }
};
using MaxPool1dOptions = MaxPoolNdOptions<1>;
using MaxPool2dOptions = MaxPoolNdOptions<2>;
using MaxPool3dOptions = MaxPoolNdOptions<3>;

/// Of average pooling over `Rank` dimensions of space.
template <std::size_t Rank>
struct AvgPoolNdOptions {
  using Sizes = std::array<std::int64_t, Rank>;
  Sizes kernel = ops::everywhere<Rank>(2);
  Sizes stride = ops::everywhere<Rank>(0);  // 0: the kernel's size
  Sizes padding = ops::everywhere<Rank>(0);
  bool ceil_mode = false;
  bool count_include_pad = true;      // zeros of the padding count as values
  std::int64_t divisor_override = 0;  // what sums are divided by instead of the number of values; 0: no other

  operator ops::PoolOptions() const {  // NOLINT(google-explicit-constructor)
    return {.rank = Rank,
            .kernel = ops::spatial(kernel, 1),
            .stride = ops::spatial(stride, 1),
            .padding = ops::spatial(padding, 0),
            .ceil_mode = ceil_mode,
            .count_include_pad = count_include_pad,
            .divisor = divisor_override};
  }
};
using AvgPool1dOptions = AvgPoolNdOptions<1>;
using AvgPool2dOptions = AvgPoolNdOptions<2>;
using AvgPool3dOptions = AvgPoolNdOptions<3>;

/// The result of max pooling, and where in its channel each value was found.
struct MaxPooled {
  Value values, indices;
};

/// x (N, C, …) with 1 to 3 dimensions of space, as `options` say.
Value max_pool(Value x, const ops::PoolOptions& options);
MaxPooled max_pool_with_indices(Value x, const ops::PoolOptions& options);
Value avg_pool(Value x, const ops::PoolOptions& options);

inline Value max_pool1d(Value x, const MaxPool1dOptions& options) { return max_pool(x, options); }
inline Value max_pool2d(Value x, const MaxPool2dOptions& options) { return max_pool(x, options); }
inline Value max_pool3d(Value x, const MaxPool3dOptions& options) { return max_pool(x, options); }
inline Value avg_pool1d(Value x, const AvgPool1dOptions& options) { return avg_pool(x, options); }
inline Value avg_pool2d(Value x, const AvgPool2dOptions& options) { return avg_pool(x, options); }
inline Value avg_pool3d(Value x, const AvgPool3dOptions& options) { return avg_pool(x, options); }

/// x (N, C, …) → (N, C, sizes…): as many windows as are wanted, of sizes that differ by one at most, overlapping where
/// they do not divide the source. One size a dimension of space.
Value adaptive_max_pool(Value x, std::span<const std::int64_t> sizes);
MaxPooled adaptive_max_pool_with_indices(Value x, std::span<const std::int64_t> sizes);
Value adaptive_avg_pool(Value x, std::span<const std::int64_t> sizes);

/// (N, C, …) → (N, C, 1…): the mean, the largest value.
Value global_avg_pool(Value x);
Value global_max_pool(Value x);
/// (N, C, H, W) → (N, C, 1, 1), the mean.
Value global_avg_pool2d(Value x);

/// (Σ x^p)^(1/p) over each window, as PyTorch computes it: from the average, so that a window cut off by ceil_mode
/// counts as a whole one. NaN for negative values unless p is a whole number up to 8, and where the sum is negative.
Value lp_pool(Value x, float p, const ops::PoolOptions& options);

/// The values of a max pooling at the places they came from, 0 elsewhere; `sizes` of the result's dimensions of space.
Value max_unpool(Value x, Value indices, std::span<const std::int64_t> sizes);

}  // namespace concord
