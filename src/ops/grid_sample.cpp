// Grid sample: of each axis the places and weights of the pixels around a coordinate, as formulas of the grid; then one
// gather for each pixel, and their weighted sum.
#include "concord/ops/grid_sample.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace {

using Mode = GridInterpolation;
using Padding = GridPadding;

/// A pixel along one axis.
struct GridTap {
  Scalar place, inside, weight;
};

/// What the options make of one axis of `size` pixels; `grid` is its coordinate in [−1, 1].
class GridAxis {
 public:
  GridAxis(const GridSampleOptions& options, std::int64_t size, const Scalar& grid)
      : options_(options), last_(static_cast<float>(size - 1)), grid_(grid) {}

  [[nodiscard]] std::vector<GridTap> taps() const {
    const Scalar at = coordinate();
    if (options_.mode == Mode::nearest) return {tap(scalar::rint(at), 1.0F)};
    const Scalar first = scalar::floor(at), part = at - first;
    if (options_.mode == Mode::bilinear) return {tap(first, 1.0F - part), tap(first + 1.0F, part)};
    return {tap(first - 1.0F, far(part + 1.0F)), tap(first, near(part)), tap(first + 1.0F, near(1.0F - part)),
            tap(first + 2.0F, far(2.0F - part))};
  }

 private:
  // Keys's kernel (1981) with a = −3/4, at distances up to 1 and from 1 to 2.
  static Scalar near(const Scalar& d) { return (1.25F * d - 2.25F) * d * d + 1.0F; }
  static Scalar far(const Scalar& d) { return -0.75F * (((d - 5.0F) * d + 8.0F) * d - 4.0F); }

  /// The coordinate in pixels. All taps of what is further outside than `room` are outside; a limit keeps infinity
  /// away.
  [[nodiscard]] Scalar coordinate() const {
    const Scalar grid = scalar::select(scalar::equal(grid_, grid_), grid_, -1.0F);
    const Scalar at =
        options_.align_corners ? (grid + 1.0F) * (0.5F * last_) : ((grid + 1.0F) * (last_ + 1.0F) - 1.0F) * 0.5F;
    // Cubic interpolation pads its pixels and not its coordinate.
    if (options_.mode != Mode::bicubic && options_.padding != Padding::zeros) return padded(at);
    if (options_.padding == Padding::reflection) return at;
    constexpr float kRoom = 4;
    return limited(at, -kRoom, last_ + kRoom);
  }

  /// `at` within [low, high]; flat at the ends, as in PyTorch.
  static Scalar limited(const Scalar& at, float low, float high) {
    return scalar::select(scalar::less_equal(at, low), low, scalar::select(scalar::less_equal(high, at), high, at));
  }

  [[nodiscard]] Scalar padded(const Scalar& at) const {
    return limited(options_.padding == Padding::reflection ? reflected(at) : at, 0, last_);
  }

  /// Mirrored at the first and last pixel, or at their outer edges, until it is between them.
  [[nodiscard]] Scalar reflected(const Scalar& at) const {
    const float low = options_.align_corners ? 0 : -0.5F, span = options_.align_corners ? last_ : last_ + 1;
    if (span == 0) return 0.0F;
    const Scalar beyond = at - low, distance = scalar::select(scalar::less(beyond, 0.0F), -beyond, beyond);
    const Scalar flips = scalar::floor(distance / span), rest = distance - flips * span;
    const Scalar is_even = scalar::equal(flips, 2.0F * scalar::floor(0.5F * flips));
    return scalar::select(is_even, rest, span - rest) + low;
  }

  [[nodiscard]] GridTap tap(const Scalar& place, const Scalar& weight) const {
    if (options_.padding == Padding::zeros) {
      return {place, scalar::less_equal(0.0F, place) * scalar::less_equal(place, last_), weight};
    }
    return {options_.mode == Mode::bicubic ? padded(place) : limited(place, 0, last_), 1.0F, weight};
  }

  const GridSampleOptions& options_;
  float last_;  // the last pixel
  Scalar grid_;
};

/// Every combination of one tap of each axis, outermost axis first: a number for each axis.
std::vector<std::vector<std::size_t>> combinations(const std::vector<std::vector<GridTap>>& axes) {
  std::vector<std::vector<std::size_t>> all{{}};
  for (const auto& taps : axes) {
    std::vector<std::vector<std::size_t>> longer;
    for (const auto& start : all) {
      for (std::size_t t = 0; t < taps.size(); ++t) {
        longer.push_back(start);
        longer.back().push_back(t);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// The row of the table for a combination of taps; `rows` where it is outside. Images follow each other along the
/// output axis before the last.
Scalar row_of(const std::vector<std::vector<GridTap>>& axes, const std::vector<std::size_t>& taps, const Shape& x) {
  Scalar place = scalar::coordinate(1), inside = 1.0F;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const GridTap& tap = axes[axis][taps[axis]];
    place = place * static_cast<float>(x.dims()[2 + axis]) + tap.place;
    inside = inside * tap.inside;
  }
  const auto rows = static_cast<float>(x.elements() / x[1]);
  return scalar::select(inside, place, rows);
}

void expect_grid(const Shape& x, const Shape& grid, const GridSampleOptions& options) {
  const std::size_t spatial = x.rank() - 2;
  CONCORD_CHECK((x.rank() == 4 || x.rank() == 5) && grid.rank() == x.rank() && grid[0] == x[0] &&
                    grid[-1] == static_cast<std::int64_t>(spatial) &&
                    *std::ranges::min_element(x.dims().subspan(1)) >= 1,
                ShapeError,
                "grid_sample: x must be (N, C, H, W) or (N, C, D, H, W) with pixels, and grid (N, …, 2) or (N, …, 3); "
                "got {} and {}",
                x.str(), grid.str());
  CONCORD_CHECK(options.mode != Mode::bicubic || spatial == 2, ArgumentError,
                "grid_sample: bicubic interpolation is for images (N, C, H, W), got {}", x.str());
  constexpr std::int64_t kMost = 1 << 24;  // formulas count in fp32
  CONCORD_CHECK(x.elements() / x[1] < kMost, NotSupported, "grid_sample: {} has more than {} pixels; take fewer images",
                x.str(), kMost);
}

/// (N, C, …) → (N·…, C), followed by a row of zeros where places outside read it.
Value rows_of(Value x, Padding padding) {
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  std::vector<std::int64_t> order{0};
  for (std::int64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  const Value rows = reshape(transpose(x, order), {-1, x.shape()[1]});
  return padding == Padding::zeros ? pad(rows, {0, 0}, {1, 0}) : rows;
}

}  // namespace

Value grid_sample(Value x, Value grid, const GridSampleOptions& options) {
  const Shape& shape = x.shape();
  expect_grid(shape, grid.shape(), options);
  const std::size_t spatial = shape.rank() - 2;
  const std::int64_t batch = shape[0], channels = shape[1];
  std::vector<std::int64_t> dims{batch, channels};  // of the result
  std::int64_t count = 1;                           // places of one image
  for (std::size_t axis = 0; axis < spatial; ++axis) {
    dims.push_back(grid.shape().dims()[1 + axis]);
    count *= dims.back();
  }
  const Value places = reshape(grid, {batch, count, static_cast<std::int64_t>(spatial)});
  std::vector<Value> components;
  std::vector<std::vector<GridTap>> axes;
  for (std::size_t axis = 0; axis < spatial; ++axis) {  // the last component of the grid is the outermost axis
    const auto component = static_cast<std::int64_t>(spatial - 1 - axis);
    components.push_back(reshape(slice(places, 2, component, component + 1), {batch, count}));
    axes.push_back(GridAxis(options, shape.dims()[2 + axis], scalar::input(static_cast<int>(axis))).taps());
  }
  std::vector<Scalar> weights, rows;
  for (const auto& taps : axes) {
    for (const GridTap& tap : taps) weights.push_back(tap.weight);
  }
  const auto all = combinations(axes);
  for (const auto& taps : all) rows.push_back(row_of(axes, taps, shape));
  const std::vector<Value> indices =
      pointwise("grid_rows", components, rows, std::vector<DType>(rows.size(), DType::i32));
  const Value table = rows_of(x, options.padding);
  std::vector<Value> operands;
  for (const Value& index : indices) operands.push_back(gather(table, index));  // (N, places, C)
  Scalar sum = 0.0F;
  const bool is_nearest = options.mode == Mode::nearest;
  for (std::size_t t = 0; t < all.size(); ++t) {
    Scalar term = scalar::input(static_cast<int>(t));
    std::size_t first = all.size();
    for (std::size_t axis = 0; axis < spatial && !is_nearest; ++axis) {
      term = scalar::input(static_cast<int>(first + all[t][axis])) * term;
      first += axes[axis].size();
    }
    sum = sum + term;
  }
  if (!is_nearest) {
    for (const Value& weight :
         pointwise("grid_weights", components, weights, std::vector<DType>(weights.size(), DType::f32))) {
      operands.push_back(reshape(weight, {batch, count, 1}));
    }
  }
  const Value sampled = is_nearest ? operands.front() : pointwise("grid_sample", operands, sum);
  return reshape(transpose(sampled, {0, 2, 1}), Shape(std::move(dims)));
}

}  // namespace concord
