// Resample: maps one or two axes of a tensor to new positions. This file has interpolation and blurring; padding,
// flipping and repeating use it in ops/rearrange.hpp.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/axis_map.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// src f32 → dst. `maps` has one map for the axis `axis`, or two maps for the last two axes. The gradient is a Resample
/// with the transposed maps. So both directions gather, and their order of summation is fixed.
class Resample final : public Operator {
 public:
  Resample(std::size_t axis, std::vector<AxisMap> maps) : axis_(axis), maps_(std::move(maps)) {}
  [[nodiscard]] std::string_view name() const override { return "resample"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] const std::vector<AxisMap>& maps() const { return maps_; }

 private:
  std::size_t axis_;
  std::vector<AxisMap> maps_;
};

/// The sizes for kernels: (outer, rows, columns) → (outer, dst_rows, dst_columns), with a map of the rows, the columns
/// or both.
struct ResampleSizes {
  std::int64_t outer = 1, rows = 1, columns = 1, dst_rows = 1, dst_columns = 1;
  std::optional<Taps> row_taps, column_taps;
};
[[nodiscard]] ResampleSizes resample_sizes(const Resample& op, const Shape& src);

}  // namespace ops

/// Maps several axes; the last two axes share one operator. maps[i] belongs to axes[i]; `axes` are sorted.
Value resample(Value x, const std::vector<std::size_t>& axes, const std::vector<ops::AxisMap>& maps);

/// `nearest` takes position floor(j·src/dst) for position j, and `nearest_exact` the position whose centre is nearest
/// to the centre of j, as "nearest-exact" in PyTorch, Pillow and SciPy.
enum class Interpolation : std::uint8_t { nearest, linear, cubic, nearest_exact };

struct InterpolateOptions {
  /// Set one of these: the spatial sizes of the result, or factors (one for all axes, or one for each).
  std::vector<std::int64_t> size = {};
  std::vector<double> scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  // not for nearest and nearest_exact
};
/// x (N, C, spatial…) → (N, C, size… or ⌊spatial·factor⌋…), as torch.nn.functional.interpolate. `linear` is PyTorch's
/// linear, bilinear or trilinear, by the number of axes. Throws ShapeError, ArgumentError.
Value interpolate(Value x, const InterpolateOptions& options);

/// The mean over a window of the last two axes with Gaussian weights. At the borders, it is the mean over the part of
/// the window inside the image. `window` is odd.
Value gaussian_blur(Value x, std::int64_t window, double deviation);

}  // namespace concord
