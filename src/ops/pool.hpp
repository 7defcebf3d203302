// Max and average pooling of signals, images and volumes, their gradients, and max unpooling. Windows have a fixed
// size, or divide the source into a given number of parts (adaptive).
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/spatial.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

struct PoolOptions {
  std::size_t rank = 2;  // spatial dimensions, 1 to 3
  Spatial kernel{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial padding{0, 0, 0};
  Spatial dilation{1, 1, 1};  // only max pooling
  bool ceil_mode = false;
  bool count_include_pad = true;  // only average pooling
  std::int64_t divisor = 0;       // only average pooling: the divisor of sums; 0: the number of pixels
  /// The sizes of dst for adaptive pooling: window o along an axis covers the pixels [⌊o·size/dst⌋, ⌈(o+1)·size/dst⌉).
  /// The other options except rank and divisor are then ignored. Zeros: not adaptive.
  Spatial adaptive{0, 0, 0};
  [[nodiscard]] bool is_adaptive() const { return adaptive[2] != 0; }
  [[nodiscard]] std::string str() const;
};

struct PoolSizes {
  std::int64_t n, c;
  Spatial src, dst;
  PoolOptions options;
  /// Whether the only window has every pixel, and no padding.
  [[nodiscard]] bool is_global() const;
  /// What the sum over a window of this kind is divided by.
  [[nodiscard]] std::int64_t global_divisor() const;
};
/// The output sizes, as in PyTorch. Throws ShapeError.
[[nodiscard]] PoolSizes pool_sizes(const Shape& src, const PoolOptions& options);

/// The base of pooling operators and their gradients.
class PoolFamily : public Operator {
 public:
  explicit PoolFamily(PoolOptions options) : options_(options) {}
  [[nodiscard]] std::string attributes() const override { return options_.str(); }
  [[nodiscard]] const PoolOptions& options() const { return options_; }

 private:
  PoolOptions options_;
};

/// src (N, C, …) → dst (N, C, …) and indices i32 of the same shape: the row-major position of the maximum in its
/// channel. The first of equal values wins; a NaN wins over any number. A window without a pixel gives −∞ and the index
/// −1.
class MaxPool final : public PoolFamily {
 public:
  using PoolFamily::PoolFamily;
  [[nodiscard]] std::string_view name() const override { return "max_pool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
};

/// diff_dst, indices → diff_src with the shape `src`.
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

/// diff_dst → diff_src with the shape `src`.
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

/// src (N, C, …), indices i32 of the same shape → dst with the shape `dst`: writes each value of src to its position in
/// its channel, and 0 elsewhere. If several values have one position, the last is kept. Positions outside the channel
/// are skipped.
class MaxUnpool final : public Operator {
 public:
  explicit MaxUnpool(Shape dst) : dst_(std::move(dst)) {}
  [[nodiscard]] std::string_view name() const override { return "max_unpool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  /// As in PyTorch, each value of src gets the gradient of its position, even if another value overwrote it.
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return dst_.str(); }

 private:
  Shape dst_;
};

/// diff_dst (N, C, …), indices i32 (N, C, …) → the values of diff_dst at these positions of their channels; 0 for
/// positions outside. The gradient of MaxUnpool and of MaxPoolBackward.
class MaxUnpoolBackward final : public Operator {
 public:
  [[nodiscard]] std::string_view name() const override { return "max_unpool_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
};

}  // namespace ops

/// Options of max pooling over `Rank` spatial dimensions.
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

/// Options of average pooling over `Rank` spatial dimensions.
template <std::size_t Rank>
struct AvgPoolNdOptions {
  using Sizes = std::array<std::int64_t, Rank>;
  Sizes kernel = ops::everywhere<Rank>(2);
  Sizes stride = ops::everywhere<Rank>(0);  // 0: the kernel's size
  Sizes padding = ops::everywhere<Rank>(0);
  bool ceil_mode = false;
  bool count_include_pad = true;      // zeros of the padding count as values
  std::int64_t divisor_override = 0;  // divides sums by this number; 0: by the number of values

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

/// The maxima, and the position of each in its channel.
struct MaxPooled {
  Value values, indices;
};

/// x (N, C, …) with 1 to 3 spatial dimensions, as given in `options`.
Value max_pool(Value x, const ops::PoolOptions& options);
MaxPooled max_pool_with_indices(Value x, const ops::PoolOptions& options);
Value avg_pool(Value x, const ops::PoolOptions& options);

inline Value max_pool1d(Value x, const MaxPool1dOptions& options) { return max_pool(x, options); }
inline Value max_pool2d(Value x, const MaxPool2dOptions& options) { return max_pool(x, options); }
inline Value max_pool3d(Value x, const MaxPool3dOptions& options) { return max_pool(x, options); }
inline Value avg_pool1d(Value x, const AvgPool1dOptions& options) { return avg_pool(x, options); }
inline Value avg_pool2d(Value x, const AvgPool2dOptions& options) { return avg_pool(x, options); }
inline Value avg_pool3d(Value x, const AvgPool3dOptions& options) { return avg_pool(x, options); }

/// x (N, C, …) → (N, C, sizes…), one size for each spatial dimension. The sizes of the windows differ by at most one;
/// windows overlap if `sizes` does not divide the source.
Value adaptive_max_pool(Value x, std::span<const std::int64_t> sizes);
MaxPooled adaptive_max_pool_with_indices(Value x, std::span<const std::int64_t> sizes);
Value adaptive_avg_pool(Value x, std::span<const std::int64_t> sizes);

/// (N, C, …) → (N, C, 1…): the mean and the maximum.
Value global_avg_pool(Value x);
Value global_max_pool(Value x);
/// (N, C, H, W) → (N, C, 1, 1): the mean.
Value global_avg_pool2d(Value x);

/// (Σ x^p)^(1/p) over each window. As in PyTorch it is computed from the average, so a window that ceil_mode cuts off
/// counts as a full one. NaN for negative values unless p is an integer up to 8, and NaN if the sum is negative.
Value lp_pool(Value x, float p, const ops::PoolOptions& options);

/// Writes the values of a max pooling to their positions, and 0 elsewhere. `sizes` are the spatial sizes of the result.
Value max_unpool(Value x, Value indices, std::span<const std::int64_t> sizes);

}  // namespace concord
