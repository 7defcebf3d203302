// Tolerances by kind of operator.
#include "concord/compare/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "concord/compare/attention_tolerance.hpp"
#include "concord/compare/extent.hpp"
#include "concord/compare/pointwise_tolerance.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/ctc.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"
#include "concord/ops/top_k.hpp"

namespace concord {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kSmallestNormal = 0x1p-126;
/// A tolerance is at least 2⁻²⁰ of what is rounded.
constexpr double kLeastOfOverflow = 0x1p-20 * std::numeric_limits<float>::max();

/// A node and the sizes of its numbers: a tensor is read once, however many terms of a tolerance ask for it.
class Sized {
 public:
  Sized(const ReplayedNode& node, std::span<const Tensor> of_node, Extents& extents)
      : entry(node.entry), op(node.op), inputs(node.inputs), results(of_node), node_(node), extents_(extents) {}
  const TraceEntry& entry;
  const Operator* op;
  std::span<const Tensor> inputs, results;
  [[nodiscard]] double largest(const Tensor& tensor) const { return extents_.of(tensor).largest; }
  [[nodiscard]] double rms(const Tensor& tensor) const { return extents_.of(tensor).rms; }
  [[nodiscard]] double largest_rms_along(const Tensor& tensor, std::span<const std::size_t> axes) const {
    return extents_.largest_rms_along(tensor, axes);
  }
  [[nodiscard]] double of_attention(std::size_t k, double unit) const {
    return attention_tolerance(node_, results, k, unit, extents_);
  }
  [[nodiscard]] double scale_of_pointwise(std::size_t k) const { return pointwise_scale(node_, k, extents_); }
  [[nodiscard]] double of_pointwise(std::size_t k) const { return pointwise_tolerance(node_, results, k, extents_); }

 private:
  const ReplayedNode& node_;
  Extents& extents_;
};

template <class Op>
bool is(const Operator* op) {
  return dynamic_cast<const Op*>(op) != nullptr;
}

double sum_tolerance(double terms, double scale) {
  return 4 * std::max(8.0, std::sqrt(terms) / 4) * kUnit * terms * scale;
}

// Where nearly all numbers are 0, their rms tells nothing of the few that are added up.
double sparse_tolerance(const Sized& node, const Tensor& result) {
  return 8 * kUnit * (node.largest(result) + node.largest(node.inputs[0]));
}

// Products summed for one element of the result.
double product_terms(const Sized& node) {
  return node.entry.cost.flops / 2 / static_cast<double>(std::max<std::int64_t>(node.results[0].elements(), 1));
}

// The most numbers that anything in it sums up: products, or those that become one of its smallest result.
double summed_terms(const Sized& node) {
  double terms = product_terms(node);
  for (const Tensor& result : node.results) {
    const auto parts = static_cast<double>(std::max<std::int64_t>(result.elements(), 1));
    for (const Tensor& input : node.inputs) terms = std::max(terms, static_cast<double>(input.elements()) / parts);
  }
  return terms;
}

double rounding_tolerance(const Sized& node, const Tensor& result) {
  double largest = 0;
  for (const Tensor& input : node.inputs) {
    if (input.dtype() == DType::f32) largest = std::max(largest, node.largest(input));
  }
  return 4e-5 * (node.largest(result) + 0.01 * largest);
}

const Operator* unfused(const Operator* op) {
  const auto* fused = dynamic_cast<const ops::Fused*>(op);
  return fused != nullptr ? fused->base().get() : op;
}

// The dimensions of a factor over which one number of the result sums its products, of groups those of all together.
// Of an image whose channels are summed: all of it, since its places are much alike.
std::vector<std::size_t> summed_dimensions(const Operator* op, std::size_t input, std::size_t rank) {
  if (const auto* matmul = dynamic_cast<const ops::Matmul*>(op)) {
    const bool sums_over_last = input == 0 ? !matmul->transpose_a() : matmul->transpose_b();
    return {rank - (sums_over_last ? 1 : 2)};
  }
  const bool is_whole_image = input == 0 && !is<ops::ConvBackwardWeights>(op);
  const std::size_t kept = is<ops::Conv>(op) ? 0 : 1;  // weights (O, C, …), images (N, C, …)
  std::vector<std::size_t> summed;
  for (std::size_t dimension = 0; dimension < rank; ++dimension) {
    if (is_whole_image || dimension != kept) summed.push_back(dimension);
  }
  return summed;
}

// The size of a factor: that of the largest numbers that are summed together, since after a few steps of training those
// of the labels seen are far larger than the others.
double factor_scale(const Sized& node, std::size_t input) {
  const Tensor& factor = node.inputs[input];
  const auto summed = summed_dimensions(unfused(node.op), input, factor.shape().rank());
  return summed.size() == factor.shape().rank() ? node.rms(factor) : node.largest_rms_along(factor, summed);
}

// Where few numbers of an operand are large, one product of the largest is the most that is rounded, and whatever is
// added to it afterwards is rounded to its size.
double product_tolerance(const Sized& node) {
  const double terms = product_terms(node), most = node.largest(node.inputs[0]) * node.largest(node.inputs[1]);
  return sum_tolerance(terms, factor_scale(node, 0) * factor_scale(node, 1)) + (16 + terms) * kUnit * most;
}

// Results and their statistics: means may be next to nothing, where the numbers they are taken of cancel out.
double forward_norm_tolerance(const Sized& node, std::size_t k, double part) {
  return part * (node.largest(node.results[k]) + (k == 0 ? 0 : node.rms(node.inputs[0])));
}

// Of batch norm's second and third result, the gradients of scale and shift, the terms may cancel out as well.
double batch_norm_backward_tolerance(const Sized& node, std::size_t k) {
  const double relative = 2e-4 * node.largest(node.results[k]);
  if (k == 0) return relative;
  const double terms =
      static_cast<double>(node.inputs[0].elements() / std::max<std::int64_t>(node.results[k].elements(), 1));
  return relative + sum_tolerance(terms, node.rms(node.inputs[1]));
}

bool is_product(const Operator* op) { return is<ops::Matmul>(op) || is<ops::ConvFamily>(op); }

bool is_attention(const Operator* op) {
  return is<ops::Attention>(op) || is<ops::AttentionBackwardQuery>(op) || is<ops::AttentionBackwardKeyValue>(op);
}

// Operators that take no image as it is stored.
bool takes_sequences(const Operator* op) { return is<ops::RecurrentFamily>(op) || is_attention(op); }

double largest_number(const Sized& node, std::size_t k) {
  double most = node.largest(node.results[k]);
  for (const Tensor& input : node.inputs) {
    if (input.dtype() == DType::f32) most = std::max(most, node.largest(input));
  }
  return most;
}

// What rounded factors add.
double factor_tolerance(const Sized& node, std::size_t k, Precision precision) {
  if (precision == Precision::fp32) return 0;
  const double unit = unit_of(precision);
  if (is<ops::RecurrentFamily>(node.op)) return 64 * unit * node.largest(node.results[k]);
  if (is_attention(node.op)) return node.of_attention(k, unit);
  if (!is_product(unfused(node.op))) return 0;
  return 4 * unit * product_terms(node) * factor_scale(node, 0) * factor_scale(node, 1);
}

// The size of the terms of a sum: of those of the largest, since the numbers of one column may be far larger than the
// others.
double term_scale(const Sized& node) {
  const auto* reduce = dynamic_cast<const ops::Reduce*>(node.op);
  return reduce == nullptr ? node.rms(node.inputs[0]) : node.largest_rms_along(node.inputs[0], reduce->axes());
}

/// The most rows or numbers that `index` adds up in one place of [0, size), `inner` of them side by side and `length`
/// after one another.
double most_in_one_place(std::span<const std::int32_t> index, std::size_t length, std::size_t size, std::size_t inner) {
  std::vector<std::int32_t> counts(index.size() / std::max<std::size_t>(length, 1) * size);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto place = static_cast<std::size_t>(index[i]);  // negative ones are far outside
    if (place < size) ++counts[(i / (inner * length) * size + place) * inner + i % inner];
  }
  return counts.empty() ? 1 : std::max(1, *std::ranges::max_element(counts));
}

/// Nothing for an operator that sums up no scattered numbers.
std::optional<double> scattered_terms(const Sized& node) {
  if (const auto* scatter = dynamic_cast<const ops::ScatterAdd*>(node.op)) {
    const auto index = node.inputs[1].values<std::int32_t>();
    return most_in_one_place(index, index.size(), static_cast<std::size_t>(scatter->rows()), 1);
  }
  if (const auto* scatter = dynamic_cast<const ops::ScatterAddAlong*>(node.op)) {
    const auto dims = node.inputs[1].shape().dims();
    std::size_t inner = 1;
    for (const std::int64_t size : dims.subspan(scatter->axis() + 1)) inner *= static_cast<std::size_t>(size);
    return most_in_one_place(node.inputs[1].values<std::int32_t>(), static_cast<std::size_t>(dims[scatter->axis()]),
                             static_cast<std::size_t>(scatter->size()), inner);
  }
  return std::nullopt;
}

// The most windows that share a number of the source.
double windows_of_one_place(const ops::PoolOptions& options) {
  double windows = 1;
  for (std::size_t axis = 0; axis < options.kernel.size(); ++axis) {
    const std::int64_t taps = options.kernel[axis], stride = options.stride[axis];
    const std::int64_t width = (taps - 1) * options.dilation[axis] + 1;
    windows *= options.is_adaptive() ? 2 : static_cast<double>(std::min(taps, (width + stride - 1) / stride));
  }
  return windows;
}

// Integer results that tell where the largest of several numbers is.
bool finds_largest(const Operator* op) { return is<ops::MaxPool>(op) || is<ops::Reduce>(op) || is<ops::TopK>(op); }

bool stores_in_16_bits(Precision precision) { return precision == Precision::bf16 || precision == Precision::fp16; }

// What it adds that a device may store images in 16 bits: operands and result are rounded, sums of rounded terms.
double storage_tolerance(const Sized& node, std::size_t k, Precision precision) {
  if (!stores_in_16_bits(precision) || takes_sequences(node.op)) return 0;
  if (is<ops::PointwiseGroup>(node.op)) return 0;  // variables are f32
  constexpr std::size_t kImage = 3;                // dimensions at least
  const auto is_image = [](const Tensor& tensor) { return tensor.shape().rank() >= kImage; };
  if (!is_image(node.results[0]) && std::ranges::none_of(node.inputs, is_image)) return 0;
  const Operator* op = unfused(node.op);
  const Tensor& result = node.results[k];
  const double unit = unit_of(precision), whole = static_cast<double>(node.inputs[0].elements());
  const double terms = std::max(1.0, whole / static_cast<double>(std::max<std::int64_t>(result.elements(), 1)));
  if (is<ops::BatchNorm>(op) && k == 0) {
    // A value is as many deviations from the mean as its error is parts of a deviation.
    return unit * (2 * node.largest(result) + 8 * node.largest(node.inputs[1]) + node.largest(node.inputs[2]));
  }
  if (is<ops::BatchNormBackward>(op) && k > 0)
    return unit * terms * 8 * node.rms(node.inputs[1]) + unit * node.largest(result);
  if (is<ops::Reduce>(op) || is<ops::AvgPool>(op))
    return unit * (terms * node.rms(node.inputs[0]) + node.largest(result));
  if (is<ops::Pointwise>(op)) return 8 * unit * std::max(node.largest(result), node.scale_of_pointwise(k));
  return 8 * unit * largest_number(node, k);
}

double rounding_of(const Sized& node, std::size_t k) {
  const Tensor& result = node.results[k];
  const Operator* op = node.op;
  if (is_product(op)) return product_tolerance(node);
  if (is<ops::Fused>(op)) {
    if (!is<ops::BatchNorm>(unfused(op))) return product_tolerance(node) + rounding_tolerance(node, result);
    if (k != 0) return forward_norm_tolerance(node, k, 2e-5);
    // The normalised values, which the epilogue may have cut off, are a few deviations times the scale, and the shift.
    const double normalised = 8 * node.largest(node.inputs[1]) + node.largest(node.inputs[2]);
    return 2e-5 * (normalised + node.largest(result));
  }
  const bool is_sum = [&] {
    const auto* reduce = dynamic_cast<const ops::Reduce*>(op);
    return (reduce && reduce->kind() == ops::ReduceKind::sum) || is<ops::AvgPool>(op) || is<ops::AvgPoolBackward>(op);
  }();
  if (const auto terms = scattered_terms(node)) {
    return sum_tolerance(*terms, node.rms(node.inputs[0])) + sparse_tolerance(node, result);
  }
  if (is_sum) {
    const double terms = std::max(1.0, static_cast<double>(node.inputs[0].elements()) /
                                           static_cast<double>(std::max<std::int64_t>(result.elements(), 1)));
    return sum_tolerance(terms, term_scale(node)) + (is<ops::Reduce>(op) ? 0 : sparse_tolerance(node, result));
  }
  if (const auto* pool = dynamic_cast<const ops::MaxPoolBackward*>(op)) {
    const double windows = windows_of_one_place(ops::pool_sizes(pool->src(), pool->options()).options);
    return windows <= 1 ? 0 : windows * windows * kUnit * node.largest(node.inputs[0]);
  }
  if (is<ops::BatchNorm>(op)) return forward_norm_tolerance(node, k, 2e-5);
  if (is<ops::BatchNormBackward>(op)) return batch_norm_backward_tolerance(node, k);
  if (is<ops::RowNorm>(op)) return forward_norm_tolerance(node, k, 2e-4);
  if (is<ops::RowNormBackward>(op)) return 2e-4 * node.largest(result);
  if (is<ops::Resample>(op)) {
    return sum_tolerance(product_terms(node), node.rms(node.inputs[0])) + sparse_tolerance(node, result);
  }
  if (const auto* scan = dynamic_cast<const ops::CumSum*>(op)) {
    return sum_tolerance(static_cast<double>(result.shape().dims()[scan->axis()]), node.rms(node.inputs[0]));
  }
  if (is<ops::RecurrentFamily>(op)) return 1e-4 * node.largest(result);  // roundings pass from step to step
  if (is<ops::Attention>(op)) return rounding_tolerance(node, result);
  if (is<ops::AttentionBackwardQuery>(op) || is<ops::AttentionBackwardKeyValue>(op)) return 2e-4 * node.largest(result);
  if (is<ops::Pointwise>(op) || is<ops::PointwiseGroup>(op)) return node.of_pointwise(k);
  const auto* random = dynamic_cast<const ops::Random*>(op);
  const bool rounds = is<ops::Softmax>(op) || is<ops::SoftmaxBackward>(op) || is<ops::CrossEntropy>(op) ||
                      is<ops::Ctc>(op) || (random && random->distribution() == ops::Distribution::normal);
  return rounds ? rounding_tolerance(node, result) : 0;
}

}  // namespace

double tolerance_of(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k, Precision precision,
                    Extents& extents) {
  if (results[k].dtype() != DType::f32) {
    return finds_largest(node.op) && stores_in_16_bits(precision) ? INFINITY : 0;
  }
  const Sized sized(node, results, extents);
  const double tolerance = rounding_of(sized, k) + storage_tolerance(sized, k, precision);
  if (tolerance == 0) return 0;
  // A device may take numbers below the smallest normal one for 0, each product of a sum among them, before it
  // multiplies by others.
  const double lost = kSmallestNormal * std::max(summed_terms(sized), 1.0) * std::max(largest_number(sized, k), 1.0);
  return tolerance + factor_tolerance(sized, k, precision) + lost;
}

double comparable_error(double error, double tolerance) {
  const bool may_overflow = std::isinf(error) && tolerance > kLeastOfOverflow;
  return std::isinf(tolerance) || may_overflow ? 0 : error;
}

double tolerance_of(const ReplayedNode& node, std::size_t k, Precision precision) {
  Extents extents;
  return tolerance_of(node, node.results, k, precision, extents);
}

}  // namespace concord
