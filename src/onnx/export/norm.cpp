// Normalisations of rows and of batches, and their gradients.
#include "concord/onnx/export/rules.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/row_norm.hpp"

namespace concord::onnx {
namespace {

std::vector<std::int64_t> axes_from(std::size_t axis, std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = axis; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

/// 1/√(mean of squares + ε) of what has been centred.
std::string reciprocal_deviation(NodeExport& x, const std::string& variance, float epsilon) {
  const std::string sum = x.add_to(variance, x.writer().number(epsilon));
  return x.add("Reciprocal", {x.add("Sqrt", {sum})});
}

std::string ones(NodeExport& x, const Shape& shape, float value) {
  const std::vector<float> values(static_cast<std::size_t>(shape.elements()), value);
  return x.writer().tensor(shape, values);
}

/// Rows as the two operators of ONNX have them; returns false where neither does.
bool write_known_rows(NodeExport& x, const ops::RowNorm& op) {
  const Sizes& sizes = x.in_sizes(0);
  if (!op.centred() || x.is_used(1) || x.is_used(2)) return false;
  if (op.axis() == 2 && sizes.size() >= 3 && !sizes[1].free) {
    const Shape channels{sizes[1].number};
    x.bind(0, x.add("InstanceNormalization", {x.in(0), ones(x, channels, 1), ones(x, channels, 0)},
                    {real("epsilon", op.epsilon())}));
    return true;
  }
  const Sizes row(sizes.begin() + static_cast<std::ptrdiff_t>(op.axis()), sizes.end());
  if (x.opset() < 17 || !is_fixed(row)) return false;
  x.bind(0, x.add("LayerNormalization", {x.in(0), ones(x, shape_of(row), 1)},
                  {whole("axis", static_cast<std::int64_t>(op.axis())), real("epsilon", op.epsilon())}));
  return true;
}

void write_row_norm(NodeExport& x) {
  const auto& op = x.op<ops::RowNorm>();
  if (write_known_rows(x, op)) return;
  const auto axes = axes_from(op.axis(), x.in_sizes(0).size());
  std::string centred = x.in(0), mean;
  if (op.centred()) {
    mean = x.reduce("ReduceMean", x.in(0), axes);
    centred = x.subtract(x.in(0), mean);
  }
  const std::string squares = x.reduce("ReduceMean", x.multiply(centred, centred), axes);
  const std::string rstd = reciprocal_deviation(x, squares, op.epsilon());
  if (x.is_used(1)) x.bind(1, x.squeeze(rstd, axes));
  if (op.centred() && x.is_used(2)) x.bind(2, x.squeeze(mean, axes));
  x.bind(0, x.multiply(centred, rstd));
}

/// diff_dst, dst, rstd → diff_src
void write_row_norm_backward(NodeExport& x) {
  const auto& op = x.op<ops::RowNormBackward>();
  const auto axes = axes_from(op.axis(), x.in_sizes(0).size());
  const std::string along = x.reduce("ReduceMean", x.multiply(x.in(0), x.in(1)), axes);
  std::string diff = x.subtract(x.in(0), x.multiply(x.in(1), along));
  if (op.centred()) diff = x.subtract(diff, x.reduce("ReduceMean", x.in(0), axes));
  x.bind(0, x.multiply(diff, x.unsqueeze(x.in(2), axes)));
}

/// All axes but that of the channels.
std::vector<std::int64_t> but_channels(const Sizes& sizes) {
  std::vector<std::int64_t> axes = axes_from(2, sizes.size());
  axes.insert(axes.begin(), 0);
  return axes;
}

/// src, scale (C), shift (C) → dst, mean (C), variance (C)
void write_training_norm(NodeExport& x) {
  const auto axes = but_channels(x.in_sizes(0));
  const std::string mean = x.reduce("ReduceMean", x.in(0), axes);
  const std::string centred = x.subtract(x.in(0), mean);
  const std::string variance = x.reduce("ReduceMean", x.multiply(centred, centred), axes);
  const std::string rstd = reciprocal_deviation(x, variance, x.op<ops::BatchNorm>().epsilon());
  const std::string factor = x.multiply(x.unsqueeze(x.in(1), axes), rstd);
  const std::string result = x.add_to(x.multiply(centred, factor), x.unsqueeze(x.in(2), axes));
  x.bind(1, x.squeeze(mean, axes));
  x.bind(2, x.squeeze(variance, axes));
  x.bind(0, result);
}

/// src, diff_dst, scale, mean, variance → diff_src, diff_scale, diff_shift
void write_training_norm_backward(NodeExport& x) {
  const auto axes = but_channels(x.in_sizes(0));
  const auto wide = [&](std::size_t i) { return x.unsqueeze(x.in(i), axes); };
  const std::string rstd = reciprocal_deviation(x, wide(4), x.op<ops::BatchNormBackward>().epsilon());
  const std::string normalised = x.multiply(x.subtract(x.in(0), wide(3)), rstd);
  const std::string product = x.multiply(x.in(1), normalised);
  const std::string along = x.reduce("ReduceMean", product, axes), mean = x.reduce("ReduceMean", x.in(1), axes);
  const std::string diff = x.subtract(x.subtract(x.in(1), mean), x.multiply(normalised, along));
  const std::string result = x.multiply(diff, x.multiply(wide(2), rstd));
  if (x.is_used(1)) x.bind(1, x.squeeze(x.reduce("ReduceSum", product, axes), axes));
  if (x.is_used(2)) x.bind(2, x.squeeze(x.reduce("ReduceSum", x.in(1), axes), axes));
  x.bind(0, result);
}

}  // namespace

void add_norm_rules(Rules& rules) {
  rules[typeid(ops::RowNorm)] = write_row_norm;
  rules[typeid(ops::RowNormBackward)] = write_row_norm_backward;
  rules[typeid(ops::BatchNorm)] = write_training_norm;
  rules[typeid(ops::BatchNormBackward)] = write_training_norm_backward;
}

}  // namespace concord::onnx
