// Operators along one axis: cumulative sums, gather and scatter by an index an element, the largest values, and
// resampling (ops/scan.hpp, gather_along.hpp, top_k.hpp, resample.hpp).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "concord/compare/reference64/families.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/top_k.hpp"

namespace concord::float64 {
namespace {

/// Where the lines of an axis lie: element i of line (outer, inner) is at place(outer, i, inner).
struct AlongLines {
  AlongLines(const Tensor& tensor, std::size_t axis) : sizes(ops::axis_sizes(tensor.shape(), axis)) {}
  ops::AxisSizes sizes;
  [[nodiscard]] std::size_t place(std::int64_t outer, std::int64_t i, std::int64_t inner) const {
    return static_cast<std::size_t>((outer * sizes.length + i) * sizes.inner + inner);
  }
  void each(auto&& line) const {
    for (std::int64_t outer = 0; outer < sizes.outer; ++outer) {
      for (std::int64_t inner = 0; inner < sizes.inner; ++inner) line(outer, inner);
    }
  }
};

Values summed_up(const ops::CumSum& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  Values result = zeros(node.results[0]);
  const AlongLines lines(node.results[0], op.axis());
  lines.each([&](std::int64_t outer, std::int64_t inner) {
    double sum = 0;
    for (std::int64_t i = 0; i < lines.sizes.length; ++i) {
      const std::size_t place = lines.place(outer, op.reverse() ? lines.sizes.length - 1 - i : i, inner);
      result[place] = op.exclusive() ? sum : sum + src[place];
      sum += src[place];
    }
  });
  return result;
}

/// visit(place in the tensor along whose axis the indices point, or nothing where one is outside; place of the index)
void visit_indices(const AlongLines& axis, const Tensor& indices, std::size_t number, auto&& visit) {
  const auto index = indices.values<std::int32_t>();
  const AlongLines lines(indices, number);
  lines.each([&](std::int64_t outer, std::int64_t inner) {
    for (std::int64_t i = 0; i < lines.sizes.length; ++i) {
      const std::size_t place = lines.place(outer, i, inner);
      const std::int64_t to = index[place];
      const bool inside = to >= 0 && to < axis.sizes.length;
      visit(inside ? std::optional(axis.place(outer, to, inner)) : std::nullopt, place);
    }
  });
}

Values gathered(const ops::GatherAlong& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  const double outside = node.inputs[0].dtype() == DType::f32 ? NAN : 0;
  Values result = zeros(node.results[0]);
  visit_indices(
      AlongLines(node.inputs[0], op.axis()), node.inputs[1], op.axis(),
      [&](std::optional<std::size_t> from, std::size_t place) { result[place] = from ? src[*from] : outside; });
  return result;
}

Values scattered(const ops::ScatterAddAlong& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  Values result = zeros(node.results[0]);
  visit_indices(AlongLines(node.results[0], op.axis()), node.inputs[1], op.axis(),
                [&](std::optional<std::size_t> to, std::size_t place) {
                  if (to) result[*to] += src[place];
                });
  return result;
}

std::vector<Values> selected(const ops::TopK& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  Values values = zeros(node.results[0]), indices = zeros(node.results[1]);
  const AlongLines from(node.inputs[0], op.axis()), to(node.results[0], op.axis());
  std::vector<std::int64_t> order(static_cast<std::size_t>(from.sizes.length));
  from.each([&](std::int64_t outer, std::int64_t inner) {
    const auto value = [&](std::int64_t i) { return src[from.place(outer, i, inner)]; };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      const bool a_nan = std::isnan(value(a)), b_nan = std::isnan(value(b));
      if (a_nan || b_nan) return op.largest() ? a_nan && !b_nan : b_nan && !a_nan;
      return op.largest() ? value(a) > value(b) : value(a) < value(b);
    });
    for (std::int64_t i = 0; i < op.k(); ++i) {
      const std::int64_t taken = order[static_cast<std::size_t>(i)];
      values[to.place(outer, i, inner)] = value(taken);
      indices[to.place(outer, i, inner)] = static_cast<double>(taken);
    }
  });
  return {std::move(values), holds_subnormals(src) ? Values{} : std::move(indices)};
}

/// What element i of an axis is computed of: (place, weight) each; of an axis without a map itself.
std::vector<std::pair<std::int64_t, double>> terms_of(const std::optional<ops::Taps>& taps, std::int64_t i) {
  if (!taps) return {{i, 1.0}};
  std::vector<std::pair<std::int64_t, double>> terms;
  const auto element = static_cast<std::size_t>(i);
  for (std::int32_t t = taps->begin[element]; t < taps->begin[element + 1]; ++t) {
    terms.emplace_back(taps->place[static_cast<std::size_t>(t)], taps->weight[static_cast<std::size_t>(t)]);
  }
  return terms;
}

Values resampled(const ops::Resample& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  Values result = zeros(node.results[0]);
  const ops::ResampleSizes s = ops::resample_sizes(op, node.inputs[0].shape());
  std::size_t place = 0;
  for (std::int64_t outer = 0; outer < s.outer; ++outer) {
    for (std::int64_t row = 0; row < s.dst_rows; ++row) {
      const auto rows = terms_of(s.row_taps, row);
      for (std::int64_t column = 0; column < s.dst_columns; ++column, ++place) {
        for (const auto& [x, x_weight] : terms_of(s.column_taps, column)) {
          for (const auto& [y, y_weight] : rows) {
            result[place] += y_weight * x_weight * src[static_cast<std::size_t>((outer * s.rows + y) * s.columns + x)];
          }
        }
      }
    }
  }
  return result;
}

}  // namespace

Results along(const ReplayedNode& node) {
  if (const auto* op = dynamic_cast<const ops::CumSum*>(node.op)) return {{summed_up(*op, node)}};
  if (const auto* op = dynamic_cast<const ops::GatherAlong*>(node.op)) return {{gathered(*op, node)}};
  if (const auto* op = dynamic_cast<const ops::ScatterAddAlong*>(node.op)) return {{scattered(*op, node)}};
  if (const auto* op = dynamic_cast<const ops::TopK*>(node.op)) return selected(*op, node);
  if (const auto* op = dynamic_cast<const ops::Resample*>(node.op)) return {{resampled(*op, node)}};
  return {};
}

}  // namespace concord::float64
