// Resampling: Resize where it has the same coordinates, Gather where each result is one source, else a product with the
// matrix of the map.
#include "concord/ops/resample.hpp"

#include <algorithm>
#include <numeric>

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

using Kind = ops::AxisMap::Kind;

/// By whole factors both take the same positions.
bool is_nearest(const ops::AxisMap& map) { return map.kind == Kind::nearest || map.kind == Kind::nearest_exact; }

bool is_interpolation(const ops::AxisMap& map) {
  if (map.transposed) return false;
  const auto src = static_cast<double>(map.src), dst = static_cast<double>(map.dst);
  if (is_nearest(map)) return map.dst % map.src == 0 && map.step == src / dst;
  if (map.kind != Kind::linear && map.kind != Kind::cubic) return false;
  if (map.align_corners) return map.dst > 1 && map.step == (src - 1) / (dst - 1);
  return map.step == src / dst;
}

/// One Resize for all maps of images whose spatial axes end with the mapped ones.
bool write_resize(NodeExport& x, const ops::Resample& op) {
  const std::vector<ops::AxisMap>& maps = op.maps();
  const Sizes& src = x.in_sizes(0);
  const std::size_t first = op.axis();
  const auto is_like_first = [&](const ops::AxisMap& map) {
    return is_interpolation(map) && map.kind == maps[0].kind && map.align_corners == maps[0].align_corners;
  };
  // Runtimes have linear and cubic maps for signals and images alone.
  if (!std::ranges::all_of(maps, is_like_first) || first != 2 || src.size() != first + maps.size()) return false;
  Attributes attributes;
  if (is_nearest(maps[0])) {
    attributes = {text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"),
                  text("nearest_mode", "floor")};
  } else {
    attributes = {text("mode", maps[0].kind == Kind::linear ? "linear" : "cubic"),
                  text("coordinate_transformation_mode", maps[0].align_corners ? "align_corners" : "half_pixel")};
    if (maps[0].kind == Kind::cubic) attributes.push_back(real("cubic_coeff_a", -0.75F));
  }
  x.bind(0, x.add("Resize", {x.in(0), "", "", x.writer().sizes(x.out_sizes())}, std::move(attributes)));
  return true;
}

std::string mapped(NodeExport& x, const std::string& name, const ops::AxisMap& map, std::size_t axis,
                   std::size_t rank) {
  const ops::Taps taps = ops::taps_of(map);
  const std::int64_t rows = map.given(), columns = map.taken();
  bool is_choice = static_cast<std::int64_t>(taps.place.size()) == rows;
  for (std::size_t j = 0; is_choice && j < taps.place.size(); ++j) {
    is_choice = taps.begin[j] == static_cast<std::int32_t>(j) && taps.weight[j] == 1;
  }
  if (is_choice) {
    const std::vector<std::int64_t> places(taps.place.begin(), taps.place.end());
    return x.add("Gather", {name, x.writer().integers(places)}, {whole("axis", static_cast<std::int64_t>(axis))});
  }
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns), 0.0F);  // (columns, rows)
  for (std::int64_t j = 0; j < rows; ++j) {
    for (std::int32_t t = taps.begin[static_cast<std::size_t>(j)]; t < taps.begin[static_cast<std::size_t>(j) + 1];
         ++t) {
      const auto at = static_cast<std::size_t>(t);
      matrix[static_cast<std::size_t>(taps.place[at] * rows + j)] += taps.weight[at];
    }
  }
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[rank - 1]);
  const std::string product =
      x.add("MatMul", {x.transpose(name, order), x.writer().tensor(Shape{columns, rows}, matrix)});
  return x.transpose(product, order);
}

void write_resample(NodeExport& x) {
  const auto& op = x.op<ops::Resample>();
  if (write_resize(x, op)) return;
  std::string name = x.in(0);
  for (std::size_t i = 0; i < op.maps().size(); ++i) {
    if (x.in_sizes(0)[op.axis() + i].free) NodeExport::refuse("it maps the free batch; a fixed batch works");
    name = mapped(x, name, op.maps()[i], op.axis() + i, x.in_sizes(0).size());
  }
  x.bind(0, name);
}

}  // namespace

void add_resample_rules(Rules& rules) { rules[typeid(ops::Resample)] = write_resample; }

}  // namespace concord::onnx
