// Resize and Upsample of ONNX.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/onnx/constant.hpp"
#include "concord/onnx/operators/axis_taps.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

// One axis through the taps, as a product with a matrix that is mostly zeros.
Value resized(const Value& x, std::size_t axis, const AxisTaps& taps) {
  HostTensor matrix(ElementType::f32, {taps.src, taps.dst()});
  for (std::int64_t j = 0; j < taps.dst(); ++j) {
    for (std::int32_t t = taps.begin[static_cast<std::size_t>(j)]; t < taps.begin[static_cast<std::size_t>(j) + 1];
         ++t) {
      const auto at = static_cast<std::size_t>(taps.place[static_cast<std::size_t>(t)] * taps.dst() + j);
      matrix.set(at, matrix.number(at) + static_cast<double>(taps.weight[static_cast<std::size_t>(t)]));
    }
  }
  Dims order;
  for (std::size_t i = 0; i < x.shape().rank(); ++i) order.push_back(static_cast<std::int64_t>(i));
  std::swap(order[axis], order.back());
  const Value turned = transposed(x, order);
  Dims dims = dims_of(turned);
  dims.back() = taps.dst();
  const Value y = matmul(reshape(turned, {-1, taps.src}), constant_value(x.graph(), matrix));
  return transposed(reshape(y, Shape(dims)), order);
}

// Results outside of the source get the value of the attribute.
Value with_outside(const Value& x, std::size_t axis, const AxisTaps& taps, float value) {
  if (!taps.has_outside()) return x;
  HostTensor mask(ElementType::boolean, {taps.dst()});
  for (std::size_t j = 0; j < taps.outside.size(); ++j) mask.set(j, std::int64_t{taps.outside[j]});
  Dims dims(x.shape().rank() - axis, 1);
  dims[0] = taps.dst();
  const Value outside = reshape(constant_value(x.graph(), mask), Shape(dims));
  return pointwise("extrapolated", {x, outside}, scalar::select(scalar::input(1), value, scalar::input(0)));
}

struct ResizePlan {
  Dims sizes;
  std::vector<double> scales, first, last;
};

void run_resize(Call& call, const ResizeRule& rule, const ResizePlan& plan) {
  const Dims& dims = call.dims(0);
  CONCORD_CHECK(std::ranges::all_of(plan.sizes, [](std::int64_t size) { return size >= 1; }), ShapeError,
                "the sizes [{}] of a result", fmt::join(plan.sizes, ", "));
  Value y = call.number_value(0);
  std::vector<std::pair<std::size_t, AxisTaps>> all;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const bool is_crop = rule.coordinates == "tf_crop_and_resize" && (plan.first[axis] != 0 || plan.last[axis] != 1);
    if (plan.sizes[axis] == dims[axis] && plan.scales[axis] == 1 && !is_crop) continue;
    all.emplace_back(
        axis, axis_taps(rule, dims[axis], plan.sizes[axis], plan.scales[axis], plan.first[axis], plan.last[axis]));
    y = resized(y, axis, all.back().second);
  }
  for (const auto& [axis, taps] : all) y = with_outside(y, axis, taps, call.number("extrapolation_value", 0));
  call.set(0, y, call.type(0));
}

std::vector<double> scales_of(const Call& call, std::size_t input) {
  std::vector<double> scales;
  const HostTensor& given = call.host(input);
  for (std::int64_t i = 0; i < given.elements(); ++i) scales.push_back(given.number(static_cast<std::size_t>(i)));
  return scales;
}

ResizePlan plan_by_scales(const Dims& dims, const std::vector<double>& scales) {
  CONCORD_CHECK(scales.size() == dims.size(), ShapeError, "{} scales for {} dimensions", scales.size(), dims.size());
  ResizePlan plan{{}, scales, std::vector<double>(dims.size(), 0), std::vector<double>(dims.size(), 1)};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    plan.sizes.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(dims[i]) * scales[i])));
  }
  return plan;
}

// The forms before version 11: x/scale, rounded down.
void resize_by_scales(Call& call) {
  const std::string mode = call.text("mode", "nearest");
  const ResizeRule rule{.mode = mode == "bilinear" ? "linear" : mode, .coordinates = "asymmetric", .nearest = "floor"};
  std::vector<double> scales;
  if (const auto given = call.numbers("scales")) {
    scales.assign(given->begin(), given->end());
  } else {
    scales = scales_of(call, 1);
  }
  run_resize(call, rule, plan_by_scales(call.dims(0), scales));
}

void resize_of(Call& call) {
  const Dims& dims = call.dims(0);
  Dims axes(dims.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (const auto given = call.integers("axes")) {
    axes = *given;
    for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(axis_of(axis, dims.size()));
  }
  std::vector<double> scales(dims.size(), 1);
  ResizePlan plan = plan_by_scales(dims, scales);
  const auto each_axis = [&](std::size_t count, const char* what, const auto& visit) {
    CONCORD_CHECK(count == axes.size(), ShapeError, "{} {} for {} axes", count, what, axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) visit(i, static_cast<std::size_t>(axes[i]));
  };
  if (call.has(3) && !call.is_empty(3)) {
    const Dims sizes = call.integers(3);
    const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
    double common = 0;
    each_axis(sizes.size(), "sizes", [&](std::size_t i, std::size_t axis) {
      plan.sizes[axis] = sizes[i];
      plan.scales[axis] = static_cast<double>(sizes[i]) / static_cast<double>(dims[axis]);
      const bool is_first = i == 0;
      if (policy == "not_larger") common = is_first ? plan.scales[axis] : std::min(common, plan.scales[axis]);
      if (policy == "not_smaller") common = is_first ? plan.scales[axis] : std::max(common, plan.scales[axis]);
    });
    each_axis(sizes.size(), "sizes", [&](std::size_t, std::size_t axis) {
      if (policy == "stretch") return;
      plan.scales[axis] = common;
      plan.sizes[axis] = static_cast<std::int64_t>(std::floor(static_cast<double>(dims[axis]) * common + 0.5));
    });
  } else {
    const std::vector<double> given = scales_of(call, 2);
    each_axis(given.size(), "scales", [&](std::size_t i, std::size_t axis) { scales[axis] = given[i]; });
    plan = plan_by_scales(dims, scales);
  }
  const ResizeRule rule{.mode = call.text("mode", "nearest"),
                        .coordinates = call.text("coordinate_transformation_mode", "half_pixel"),
                        .nearest = call.text("nearest_mode", "round_prefer_floor"),
                        .cubic_coefficient = call.number("cubic_coeff_a", -0.75F),
                        .exclude_outside = call.integer("exclude_outside", 0) != 0,
                        .antialias = call.integer("antialias", 0) != 0};
  if (rule.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = scales_of(call, 1);
    each_axis(roi.size() / 2, "regions", [&](std::size_t i, std::size_t axis) {
      plan.first[axis] = roi[i];
      plan.last[axis] = roi[axes.size() + i];
    });
  }
  run_resize(call, rule, plan);
}

}  // namespace

void add_resizing(Table& table) {
  table.add("Upsample", {.since = 7, .run = resize_by_scales, .known = {1}});
  table.add("Resize", {.since = 10, .run = resize_by_scales, .known = {1}});
  table.add("Resize", {.since = 11, .run = resize_of, .known = {1, 2, 3}});
}

}  // namespace concord::onnx
