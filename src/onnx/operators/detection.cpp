// RoiAlign of ONNX: an average over bilinear samples is a product with a matrix for the rows and one for the columns of
// each region.
#include "concord/core/check.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

struct RegionAxis {
  std::int64_t size, bins, samples;  // of the image, of the result, per bin
  float scale, offset;
  bool at_least_one;  // regions are at least one pixel wide
};

// starts and ends (R) → (R, bins, size): the weight of each pixel in each bin.
Value region_weights(const Value& starts, const Value& ends, const RegionAxis& axis) {
  const std::int64_t count = starts.shape()[0];
  const Scalar start = scalar::input(0) * axis.scale - axis.offset, end = scalar::input(1) * axis.scale - axis.offset;
  const Scalar extent = axis.at_least_one ? scalar::max(end - start, 1.0F) : end - start;
  const Scalar bin = extent / static_cast<float>(axis.bins);
  const auto largest = static_cast<float>(axis.size - 1);
  Scalar weight = 0.0F;
  for (std::int64_t i = 0; i < axis.samples; ++i) {
    const float within = (static_cast<float>(i) + 0.5F) / static_cast<float>(axis.samples);
    const Scalar place = start + (scalar::coordinate(1) + within) * bin;
    const Scalar is_inside = scalar::less_equal(-1.0F, place) * scalar::less_equal(place, largest + 1.0F);
    const Scalar clamped = scalar::max(0.0F, scalar::min(place, largest));
    weight = weight + is_inside * scalar::max(0.0F, 1.0F - scalar::abs(clamped - scalar::coordinate(0)));
  }
  return pointwise("region_weights", {reshape(starts, {count, 1, 1}), reshape(ends, {count, 1, 1})},
                   weight * (1.0F / static_cast<float>(axis.samples)), DType::f32, Shape{count, axis.bins, axis.size});
}

void roi_align(Call& call) {
  const Dims& d = call.dims(0);
  CONCORD_CHECK(d.size() == 4 && call.rank(1) == 2, ShapeError, "images (N, C, H, W) and regions (R, 4) are needed");
  const std::int64_t count = call.dims(1)[0], rows = call.integer("output_height", 1),
                     columns = call.integer("output_width", 1);
  const bool half = call.opset() >= 16 && call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const std::int64_t samples = call.required_integer("sampling_ratio");
  const Value regions = call.number_value(1);
  const auto column_of = [&](std::int64_t k) { return reshape(slice(regions, 1, k, k + 1), {count}); };
  const auto axis = [&](std::int64_t size, std::int64_t bins) {
    return RegionAxis{size, bins, samples, call.number("spatial_scale", 1), half ? 0.5F : 0.0F, !half};
  };
  const Value of_rows = region_weights(column_of(1), column_of(3), axis(d[2], rows));        // (R, rows, H)
  const Value of_columns = region_weights(column_of(0), column_of(2), axis(d[3], columns));  // (R, columns, W)
  const Value images = gather(call.number_value(0), call.value(2));                          // (R, C, H, W)
  const Value narrow = matmul(reshape(images, {count, d[1] * d[2], d[3]}), of_columns, false, true);
  const Value by_row =
      reshape(transpose(reshape(narrow, {count, d[1], d[2], columns}), {0, 2, 1, 3}), {count, d[2], d[1] * columns});
  const Value y = reshape(matmul(of_rows, by_row), {count, rows, d[1], columns});
  call.set(0, transpose(y, {0, 2, 1, 3}), call.type(0));
}

std::string check_roi_align(const NodeDef& node) {
  const Attribute* const mode = node.find("mode");
  if (mode != nullptr && mode->s != "avg") return "only the mode avg is supported";
  const Attribute* const ratio = node.find("sampling_ratio");
  if (ratio == nullptr || ratio->i < 1) return "a sampling_ratio that depends on the regions is not supported";
  return {};
}

}  // namespace

void add_detection(Table& table) { table.add("RoiAlign", {.since = 10, .run = roi_align, .check = check_roi_align}); }

}  // namespace concord::onnx
