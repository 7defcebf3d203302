// Batch and row normalisation with their gradients (papers in ops/normalise.hpp and ops/row_norm.hpp).
#include "concord/ops/normalise.hpp"

#include <cmath>

#include "concord/compare/reference64/families.hpp"
#include "concord/ops/row_norm.hpp"

namespace concord::float64 {
namespace {

/// The values of a channel of (N, C, …): element(i) for i in [0, count).
struct Channels {
  std::size_t images, channels, plane;
  explicit Channels(const Shape& shape)
      : images(static_cast<std::size_t>(shape.dims()[0])),
        channels(static_cast<std::size_t>(shape.dims()[1])),
        plane(static_cast<std::size_t>(shape.elements()) / (images * channels)) {}
  [[nodiscard]] std::size_t count() const { return images * plane; }
  [[nodiscard]] std::size_t element(std::size_t channel, std::size_t i) const {
    return (i / plane * channels + channel) * plane + i % plane;
  }
};

/// The mean of term(i) over i < count.
double mean_of(std::size_t count, auto&& term) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += term(i);
  return sum / static_cast<double>(count);
}

Results batch_norm(const ops::BatchNorm& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]), scale = doubles(node.inputs[1]), shift = doubles(node.inputs[2]);
  const Channels form(node.inputs[0].shape());
  Values dst = zeros(node.results[0]), means = zeros(node.results[1]), variances = zeros(node.results[2]);
  for (std::size_t c = 0; c < form.channels; ++c) {
    const auto value = [&](std::size_t i) { return src[form.element(c, i)]; };
    const double mean = means[c] = mean_of(form.count(), value);
    variances[c] = mean_of(form.count(), [&](std::size_t i) { return (value(i) - mean) * (value(i) - mean); });
    const double factor = scale[c] / std::sqrt(variances[c] + static_cast<double>(op.epsilon()));
    for (std::size_t i = 0; i < form.count(); ++i) dst[form.element(c, i)] = (value(i) - mean) * factor + shift[c];
  }
  return {{std::move(dst), std::move(means), std::move(variances)}};
}

/// diff_src = scale·rstd·(diff − mean(diff) − x̂·mean(diff·x̂)), diff_scale = Σ diff·x̂, diff_shift = Σ diff. Given are
/// the mean and the variance in fp32: devices find what the rounding of the mean has left, and a variance that fp32
/// does not hold.
Results batch_norm_backward(const ops::BatchNormBackward& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]), diff = doubles(node.inputs[1]), scale = doubles(node.inputs[2]);
  const Values means = doubles(node.inputs[3]), variances = doubles(node.inputs[4]);
  const Channels form(node.inputs[0].shape());
  Values diff_src = zeros(node.results[0]), diff_scale = zeros(node.results[1]), diff_shift = zeros(node.results[2]);
  const auto count = static_cast<double>(form.count());
  for (std::size_t c = 0; c < form.channels; ++c) {
    const auto deviation = [&](std::size_t i) { return src[form.element(c, i)] - means[c]; };
    const double rest = mean_of(form.count(), deviation);
    const bool is_held = variances[c] > 1e-28 && variances[c] < 1e36;
    const double variance =
        is_held ? variances[c] : mean_of(form.count(), [&](std::size_t i) { return std::pow(deviation(i) - rest, 2); });
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(op.epsilon()));
    const auto given = [&](std::size_t i) { return diff[form.element(c, i)]; };
    const auto normal = [&](std::size_t i) { return (deviation(i) - rest) * rstd; };
    const double mean = mean_of(form.count(), given);
    const double product = mean_of(form.count(), [&](std::size_t i) { return given(i) * normal(i); });
    diff_scale[c] = product * count;
    diff_shift[c] = mean * count;
    for (std::size_t i = 0; i < form.count(); ++i) {
      diff_src[form.element(c, i)] = scale[c] * rstd * (given(i) - mean - normal(i) * product);
    }
  }
  return {{std::move(diff_src), std::move(diff_scale), std::move(diff_shift)}};
}

Results row_norm(const ops::RowNorm& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  const ops::RowSizes sizes = ops::row_sizes(node.inputs[0].shape(), op.axis());
  const auto length = static_cast<std::size_t>(sizes.length);
  std::vector<Values> results;
  for (const Tensor& result : node.results) results.push_back(zeros(result));
  for (std::size_t row = 0; row < static_cast<std::size_t>(sizes.rows); ++row) {
    const double* const from = src.data() + row * length;
    const double mean = op.centred() ? mean_of(length, [&](std::size_t i) { return from[i]; }) : 0;
    const double square = mean_of(length, [&](std::size_t i) { return (from[i] - mean) * (from[i] - mean); });
    const double rstd = results[1][row] = 1 / std::sqrt(square + static_cast<double>(op.epsilon()));
    if (op.centred()) results[2][row] = mean;
    for (std::size_t i = 0; i < length; ++i) results[0][row * length + i] = (from[i] - mean) * rstd;
  }
  return results;
}

Results row_norm_backward(const ops::RowNormBackward& op, const ReplayedNode& node) {
  const Values diff = doubles(node.inputs[0]), dst = doubles(node.inputs[1]), rstds = doubles(node.inputs[2]);
  const ops::RowSizes sizes = ops::row_sizes(node.inputs[0].shape(), op.axis());
  const auto length = static_cast<std::size_t>(sizes.length);
  Values result = zeros(node.results[0]);
  for (std::size_t row = 0; row < static_cast<std::size_t>(sizes.rows); ++row) {
    const std::size_t first = row * length;
    const double mean = op.centred() ? mean_of(length, [&](std::size_t i) { return diff[first + i]; }) : 0;
    const double product = mean_of(length, [&](std::size_t i) { return diff[first + i] * dst[first + i]; });
    for (std::size_t i = first; i < first + length; ++i) result[i] = rstds[row] * (diff[i] - mean - dst[i] * product);
  }
  return {{std::move(result)}};
}

}  // namespace

Results normalise(const ReplayedNode& node) {
  if (const auto* op = dynamic_cast<const ops::BatchNorm*>(node.op)) return batch_norm(*op, node);
  if (const auto* op = dynamic_cast<const ops::BatchNormBackward*>(node.op)) return batch_norm_backward(*op, node);
  if (const auto* op = dynamic_cast<const ops::RowNorm*>(node.op)) return row_norm(*op, node);
  if (const auto* op = dynamic_cast<const ops::RowNormBackward*>(node.op)) return row_norm_backward(*op, node);
  return {};
}

}  // namespace concord::float64
