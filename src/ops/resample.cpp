// Resample: shape rule, gradient, cost; interpolation and blurring.
#include "concord/ops/resample.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> Resample::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape& src = inputs[0].shape;
  const std::size_t count = maps_.size();
  CONCORD_CHECK(count >= 1 && count <= 2 && axis_ + count <= src.rank() && (count == 1 || axis_ + 2 == src.rank()),
                ShapeError, "resample: {} maps from axis {} of src {}; one of any axis or two of the last axes needed",
                count, axis_, src.str());
  std::vector<std::int64_t> dims(src.dims().begin(), src.dims().end());
  for (std::size_t i = 0; i < count; ++i) {
    const bool has_source = maps_[i].taken() > 0 || maps_[i].given() == 0;
    CONCORD_CHECK(maps_[i].taken() == dims[axis_ + i] && has_source, ShapeError,
                  "resample: a map of {} to {} positions does not accept axis {} of src {}", maps_[i].taken(),
                  maps_[i].given(), axis_ + i, src.str());
    dims[axis_ + i] = maps_[i].given();
  }
  return {{DType::f32, Shape(std::move(dims))}};
}

std::vector<Value> Resample::gradient(const Node& node, std::span<const Value> diff_dst,
                                      const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  std::vector<AxisMap> maps;
  for (const AxisMap& map : maps_) maps.push_back(map.transpose());
  diffs[0] = diff_dst[0].graph().add(std::make_shared<Resample>(axis_, std::move(maps)), {diff_dst[0]});
  return diffs;
}

Cost Resample::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  double taps = 1;  // an element of the result
  for (const AxisMap& map : maps_) {
    taps *=
        static_cast<double>(taps_of(map).place.size()) / static_cast<double>(std::max<std::int64_t>(map.given(), 1));
  }
  cost.flops = 2 * taps * static_cast<double>(outputs[0].shape.elements());
  return cost;
}

std::string Resample::attributes() const {
  std::string text = fmt::format("axis {}", axis_);
  for (const AxisMap& map : maps_) text += fmt::format(" ({})", map.str());
  return text;
}

ResampleSizes resample_sizes(const Resample& op, const Shape& src) {
  const AxisSizes first = axis_sizes(src, op.axis());
  const auto& maps = op.maps();
  ResampleSizes sizes;
  sizes.outer = first.outer;
  if (maps.size() == 1 && first.inner == 1) {
    sizes.columns = first.length;
    sizes.dst_columns = maps[0].given();
    sizes.column_taps = taps_of(maps[0]);
    return sizes;
  }
  sizes.rows = first.length;
  sizes.dst_rows = maps[0].given();
  sizes.row_taps = taps_of(maps[0]);
  sizes.columns = sizes.dst_columns = first.inner;
  if (maps.size() == 2) {
    sizes.dst_columns = maps[1].given();
    sizes.column_taps = taps_of(maps[1]);
  }
  return sizes;
}

}  // namespace ops

Value resample(Value x, const std::vector<std::size_t>& axes, const std::vector<ops::AxisMap>& maps) {
  const std::size_t rank = x.shape().rank();
  const auto add = [&](std::size_t axis, std::vector<ops::AxisMap> some) {
    x = x.graph().add(std::make_shared<ops::Resample>(axis, std::move(some)), {x});
  };
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] + 2 == rank && i + 1 < axes.size()) {
      add(axes[i], {maps[i], maps[i + 1]});
      break;
    }
    add(axes[i], {maps[i]});
  }
  return x;
}

namespace {

using Kind = ops::AxisMap::Kind;

Kind kind_of(Interpolation mode) {
  switch (mode) {
    case Interpolation::nearest: return Kind::nearest;
    case Interpolation::linear: return Kind::linear;
    case Interpolation::cubic: return Kind::cubic;
    case Interpolation::nearest_exact: return Kind::nearest_exact;
  }
  throw ArgumentError("unknown interpolation");
}

/// One axis of the interpolation; `factor` is 0 where sizes are given.
ops::AxisMap interpolation_of(const InterpolateOptions& options, std::int64_t src, std::int64_t dst, double factor) {
  double step = factor > 0 ? 1 / factor : static_cast<double>(src) / static_cast<double>(dst);
  if (options.align_corners) step = dst > 1 ? static_cast<double>(src - 1) / static_cast<double>(dst - 1) : 0;
  return {.kind = kind_of(options.mode), .src = src, .dst = dst, .step = step, .align_corners = options.align_corners};
}

}  // namespace

Value interpolate(Value x, const InterpolateOptions& options) {
  const Shape& shape = x.shape();
  CONCORD_CHECK(shape.rank() >= 3, ShapeError, "interpolate: expected (N, C, spatial…), got {}", shape.str());
  const std::size_t spatial = shape.rank() - 2, sizes = options.size.size(), factors = options.scale_factor.size();
  CONCORD_CHECK((sizes == 0) != (factors == 0), ArgumentError,
                "interpolate: either sizes or scale factors are needed, got {} and {}", sizes, factors);
  CONCORD_CHECK(sizes == 0 || sizes == spatial, ShapeError, "interpolate: {} has {} spatial axes, got {} sizes",
                shape.str(), spatial, sizes);
  CONCORD_CHECK(factors <= 1 || factors == spatial, ShapeError,
                "interpolate: {} has {} spatial axes, got {} scale factors", shape.str(), spatial, factors);
  const bool is_nearest = options.mode == Interpolation::nearest || options.mode == Interpolation::nearest_exact;
  CONCORD_CHECK(!is_nearest || !options.align_corners, ArgumentError,
                "interpolate: align_corners cannot be used with nearest or nearest_exact");
  CONCORD_CHECK(options.mode != Interpolation::cubic || spatial == 2, ShapeError,
                "interpolate: cubic needs (N, C, rows, columns), got {}", shape.str());
  std::vector<std::size_t> axes;
  std::vector<ops::AxisMap> maps;
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t src = shape.dims()[2 + i];
    const double factor = factors == 0 ? 0 : options.scale_factor[factors == 1 ? 0 : i];
    const std::int64_t dst =
        factors == 0 ? options.size[i] : static_cast<std::int64_t>(std::floor(static_cast<double>(src) * factor));
    CONCORD_CHECK(dst >= 1, ShapeError, "interpolate: axis {} of {} would get size {}", 2 + i, shape.str(), dst);
    axes.push_back(2 + i);
    maps.push_back(interpolation_of(options, src, dst, factor));
  }
  return resample(x, axes, maps);
}

Value gaussian_blur(Value x, std::int64_t window, double deviation) {
  CONCORD_CHECK(window >= 1 && window % 2 == 1 && deviation > 0, ArgumentError,
                "gaussian_blur: the window must be odd and the deviation positive, got {} and {}", window, deviation);
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(rank >= 2, ShapeError, "gaussian_blur: at least two axes needed, got {}", x.shape().str());
  // Two sums of `window` terms instead of one of its square.
  for (const std::size_t axis : {rank - 2, rank - 1}) {
    const std::int64_t size = x.shape().dims()[axis];
    x = resample(x, {axis}, {{.kind = Kind::gaussian, .src = size, .dst = size, .count = window, .step = deviation}});
  }
  return x;
}

}  // namespace concord
