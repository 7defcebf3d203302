// Reshape, Transpose, Slice, Pad, Concat, and what copies its input; GridSample at the Reshape that ends it.
#include "concord/ops/copy.hpp"

#include <algorithm>

#include "concord/onnx/export/rules.hpp"
#include "concord/onnx/export/sampled_grid.hpp"
#include "concord/ops/stop_gradient.hpp"

namespace concord::onnx {
namespace {

void write_slice(NodeExport& x) {
  const auto& op = x.op<ops::Slice>();
  const Sizes &src = x.in_sizes(0), &dst = x.out_sizes();
  std::vector<std::int64_t> starts, ends, axes, steps;
  for (std::size_t i = 0; i < src.size(); ++i) {
    const std::int64_t start = op.start()[i], step = op.step()[i];
    if (start == 0 && step == 1 && src[i] == dst[i]) continue;
    if (src[i].free) NodeExport::refuse("it takes a part of the free batch; a fixed batch works");
    starts.push_back(start);
    ends.push_back(start + (dst[i].number - 1) * step + 1);
    axes.push_back(static_cast<std::int64_t>(i));
    steps.push_back(step);
  }
  GraphWriter& w = x.writer();
  x.bind(0, x.add("Slice", {x.in(0), w.integers(starts), w.integers(ends), w.integers(axes), w.integers(steps)}));
}

/// Puts step − 1 values between the elements of an axis: an axis of size 1 after it is padded and joined with it.
std::string spread(NodeExport& x, const std::string& name, Sizes& sizes, std::size_t axis, std::int64_t step,
                   const std::string& value) {
  Sizes wide = sizes;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Size{1, false});
  std::vector<std::int64_t> pads(2 * wide.size(), 0);
  pads[wide.size() + axis + 1] = step - 1;
  const std::string padded = x.add("Pad", {x.reshape(name, sizes, wide), x.writer().integers(pads), value});
  const std::int64_t size = sizes[axis].number;
  sizes[axis].number = size * step;
  const std::string joined = x.reshape(padded, {}, sizes);
  sizes[axis].number = (size - 1) * step + 1;
  return x.slice(joined, static_cast<std::int64_t>(axis), 0, sizes[axis].number);
}

void write_pad(NodeExport& x) {
  const auto& op = x.op<ops::Pad>();
  const Sizes& dst = x.out_sizes();
  Sizes sizes = x.in_sizes(0);
  GraphWriter& w = x.writer();
  std::string value = w.number(op.value());
  if (x.node().outputs[0].dtype != DType::f32) value = x.cast(value, element_of(x.node().outputs[0].dtype));
  std::string name = x.in(0);
  std::vector<std::int64_t> pads(2 * sizes.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == dst[i]) continue;
    if (sizes[i].free || dst[i].free) NodeExport::refuse("it pads the free batch; a fixed batch works");
    if (op.step()[i] > 1 && sizes[i].number > 1) name = spread(x, name, sizes, i, op.step()[i], value);
    pads[i] = op.before()[i];
    pads[sizes.size() + i] = dst[i].number - op.before()[i] - sizes[i].number;
  }
  x.bind(0, x.add("Pad", {name, w.integers(pads), value}));
}

/// All of a grid sample at the reshape that it ends with; false for another reshape.
bool write_grid_sample(NodeExport& x) {
  const auto found = sampled_grid(x.output(0), x.opset());
  if (!found) return false;
  const bool is_new = x.opset() >= 20;  // the modes have other names since
  const char* mode = is_new ? "linear" : "bilinear";
  if (found->options.mode == GridInterpolation::nearest) mode = "nearest";
  if (found->options.mode == GridInterpolation::bicubic) mode = is_new ? "cubic" : "bicubic";
  const char* padding = "zeros";
  if (found->options.padding == GridPadding::border) padding = "border";
  if (found->options.padding == GridPadding::reflection) padding = "reflection";
  x.bind(0, x.add("GridSample", {x.name_of(found->x), x.name_of(found->grid)},
                  {text("mode", mode), text("padding_mode", padding),
                   whole("align_corners", found->options.align_corners ? 1 : 0)}));
  return true;
}

}  // namespace

void add_copy_rules(Rules& rules) {
  rules[typeid(ops::Reshape)] = [](NodeExport& x) {
    if (!write_grid_sample(x)) x.bind(0, x.reshape(x.in(0), x.in_sizes(0), x.out_sizes()));
  };
  rules[typeid(ops::Transpose)] = [](NodeExport& x) {
    const std::vector<std::size_t>& order = x.op<ops::Transpose>().order();
    x.bind(0, x.transpose(x.in(0), {order.begin(), order.end()}));
  };
  rules[typeid(ops::Slice)] = write_slice;
  rules[typeid(ops::Pad)] = write_pad;
  rules[typeid(ops::Concat)] = [](NodeExport& x) {
    Names parts;
    for (std::size_t i = 0; i < x.node().inputs.size(); ++i) parts.push_back(x.in(i));
    x.bind(0, x.concat(std::move(parts), static_cast<std::int64_t>(x.op<ops::Concat>().axis())));
  };
  rules[typeid(ops::StopGradient)] = [](NodeExport& x) { x.bind(0, x.in(0)); };
}

}  // namespace concord::onnx
