// Resize, Upsample and GridSample of ONNX: sizes, scales and regions of each form, and the names of the rules.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/grid_sample.hpp"
#include "concord/ops/resize.hpp"

namespace concord::onnx {
namespace {

template <class Rule>
Rule rule_named(const std::string& name, std::initializer_list<std::pair<const char*, Rule>> rules) {
  for (const auto& [known, rule] : rules) {
    if (name == known) return rule;
  }
  throw NotSupported(fmt::format("the rule '{}' is unknown", name));
}

Interpolation interpolation_named(const std::string& name) {
  return rule_named<Interpolation>(name, {{"nearest", Interpolation::nearest},
                                          {"linear", Interpolation::linear},
                                          {"bilinear", Interpolation::linear},
                                          {"cubic", Interpolation::cubic}});
}

ResizeCoordinates coordinates_named(const std::string& name) {
  using enum ResizeCoordinates;
  return rule_named<ResizeCoordinates>(name, {{"half_pixel", half_pixel},
                                              {"half_pixel_symmetric", half_pixel_symmetric},
                                              {"pytorch_half_pixel", pytorch_half_pixel},
                                              {"align_corners", align_corners},
                                              {"asymmetric", asymmetric},
                                              {"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
                                              {"tf_crop_and_resize", tf_crop_and_resize}});
}

ResizeRounding rounding_named(const std::string& name) {
  using enum ResizeRounding;
  return rule_named<ResizeRounding>(name, {{"round_prefer_floor", round_prefer_floor},
                                           {"round_prefer_ceil", round_prefer_ceil},
                                           {"floor", floor},
                                           {"ceil", ceil}});
}

std::vector<double> numbers_of(const Call& call, std::size_t input) {
  std::vector<double> numbers;
  const HostTensor& given = call.host(input);
  for (std::int64_t i = 0; i < given.elements(); ++i) numbers.push_back(given.number(static_cast<std::size_t>(i)));
  return numbers;
}

void set_scales(const Call& call, std::vector<ResizeAxis>& axes, const std::vector<double>& scales) {
  CONCORD_CHECK(scales.size() == axes.size(), ShapeError, "{} scales for {} axes", scales.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = scales[i];
    // In fp32, as the file has it: 10 times the number next to 0.7 is 7.
    const auto size = static_cast<float>(call.dims(0)[axes[i].axis]) * static_cast<float>(scales[i]);
    axes[i].size = static_cast<std::int64_t>(std::floor(size));
  }
}

// Sizes, or what of them keeps the ratio of the sides.
void set_sizes(const Call& call, std::vector<ResizeAxis>& axes, const Dims& sizes) {
  CONCORD_CHECK(sizes.size() == axes.size(), ShapeError, "{} sizes for {} axes", sizes.size(), axes.size());
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  std::vector<double> scales;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].size = sizes[i];
    scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(call.dims(0)[axes[i].axis]));
  }
  if (policy == "stretch") return;
  CONCORD_CHECK(policy == "not_larger" || policy == "not_smaller", NotSupported, "the policy '{}' is unknown", policy);
  const double scale = policy == "not_larger" ? *std::ranges::min_element(scales) : *std::ranges::max_element(scales);
  for (ResizeAxis& axis : axes) {
    axis.scale = scale;
    axis.size = static_cast<std::int64_t>(std::floor(static_cast<double>(call.dims(0)[axis.axis]) * scale + 0.5));
  }
}

std::vector<ResizeAxis> all_axes(const Call& call) {
  std::vector<ResizeAxis> axes;
  if (const auto given = call.integers("axes")) {
    for (const std::int64_t axis : *given) axes.push_back({axis_of(axis, call.rank(0))});
  } else {
    for (std::size_t i = 0; i < call.rank(0); ++i) axes.push_back({i});
  }
  return axes;
}

// The forms before version 11: x/scale, rounded down.
void resize_by_scales(Call& call) {
  std::vector<ResizeAxis> axes = all_axes(call);
  if (const auto given = call.numbers("scales")) {
    set_scales(call, axes, {given->begin(), given->end()});
  } else {
    set_scales(call, axes, numbers_of(call, 1));
  }
  const ResizeOptions options{.mode = interpolation_named(call.text("mode", "nearest")),
                              .coordinates = ResizeCoordinates::asymmetric,
                              .rounding = ResizeRounding::floor};
  call.set(0, resize(call.number_value(0), axes, options), call.type(0));
}

void resize_of(Call& call) {
  std::vector<ResizeAxis> axes = all_axes(call);
  if (call.has(3) && !call.is_empty(3)) {
    set_sizes(call, axes, call.integers(3));
  } else {
    set_scales(call, axes, numbers_of(call, 2));
  }
  const ResizeOptions options{
      .mode = interpolation_named(call.text("mode", "nearest")),
      .coordinates = coordinates_named(call.text("coordinate_transformation_mode", "half_pixel")),
      .rounding = rounding_named(call.text("nearest_mode", "round_prefer_floor")),
      .cubic_a = call.number("cubic_coeff_a", -0.75F),
      .exclude_outside = call.integer("exclude_outside", 0) != 0,
      .antialias = call.integer("antialias", 0) != 0,
      .extrapolation_value = call.number("extrapolation_value", 0)};
  if (options.coordinates == ResizeCoordinates::tf_crop_and_resize) {
    const std::vector<double> regions = numbers_of(call, 1);
    CONCORD_CHECK(regions.size() == 2 * axes.size(), ShapeError, "{} numbers of a region for {} axes", regions.size(),
                  axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].begin = regions[i];
      axes[i].end = regions[axes.size() + i];
    }
  }
  call.set(0, resize(call.number_value(0), axes, options), call.type(0));
}

void grid_sample_of(Call& call) {
  // The modes have other names since version 20.
  const auto mode =
      rule_named<GridInterpolation>(call.text("mode", "linear"), {{"linear", GridInterpolation::bilinear},
                                                                  {"bilinear", GridInterpolation::bilinear},
                                                                  {"nearest", GridInterpolation::nearest},
                                                                  {"cubic", GridInterpolation::bicubic},
                                                                  {"bicubic", GridInterpolation::bicubic}});
  const auto padding = rule_named<GridPadding>(
      call.text("padding_mode", "zeros"),
      {{"zeros", GridPadding::zeros}, {"border", GridPadding::border}, {"reflection", GridPadding::reflection}});
  const GridSampleOptions options{mode, padding, call.integer("align_corners", 0) != 0};
  call.set(0, grid_sample(call.number_value(0), call.number_value(1), options), call.type(0));
}

}  // namespace

void add_resizing(Table& table) {
  table.add("Upsample", {.since = 7, .run = resize_by_scales, .known = {1}});
  table.add("Resize", {.since = 10, .run = resize_by_scales, .known = {1}});
  table.add("Resize", {.since = 11, .run = resize_of, .known = {1, 2, 3}});
  table.add("GridSample", {.since = 16, .run = grid_sample_of});
}

}  // namespace concord::onnx
