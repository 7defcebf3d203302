// Normalisations of ONNX.
#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/nn/substitution.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/row_norm.hpp"

namespace concord::onnx {
namespace {

Value along_channels(const Value& x, std::size_t rank) {
  Dims dims(rank - 1, 1);
  dims[0] = x.shape().elements();
  return reshape(x, Shape(dims));
}

// Fine-tuning moves the running statistics as a layer does, with the unbiased variance.
void move_statistics(Call& call, const BatchNormResult& batch, float momentum, double count) {
  const Value mean = call.value(3), variance = call.value(4);
  if (!mean.node().variable || !variance.node().variable) return;  // they are no statistics of this network
  const auto bessel = static_cast<float>(count / (count - 1));
  const std::vector<Value> operands{nn::latest(mean), nn::latest(variance), batch.mean, batch.variance};
  const auto moved = [&](int running, const Scalar& now) {
    return momentum * scalar::input(running) + (1 - momentum) * now;
  };
  const auto next =
      pointwise("running_statistics", operands, {moved(0, scalar::input(2)), moved(1, scalar::input(3) * bessel)},
                {DType::f32, DType::f32});
  call.graph().assign(mean, next[0]);
  call.graph().assign(variance, next[1]);
}

// One value for each channel is its own mean, and nothing of it is left.
BatchNormResult norm_of_batch(const Value& x, const Value& scale, const Value& shift, float epsilon) {
  if (x.shape().elements() != x.shape()[1]) return batch_norm(x, scale, shift, epsilon);
  const Value mean = reshape(x, scale.shape()), none = full(x.graph(), scale.shape(), 0);
  return {reshape((reshape(x, scale.shape()) - mean) * scale + shift, x.shape()), mean, none};
}

void batch_norm_of(Call& call) {
  const float epsilon = call.number("epsilon", 1e-5F), momentum = call.number("momentum", 0.9F);
  CONCORD_CHECK(call.integer("spatial", 1) != 0 || call.rank(0) == 2, NotSupported, "statistics for each position");
  for (std::size_t i = 3; i < 5; ++i) {
    if (call.has(i)) call.operand(i)->is_statistic = true;
  }
  const Value x = call.number_value(0), scale = call.number_value(1), shift = call.number_value(2);
  const std::size_t rank = call.rank(0);
  CONCORD_CHECK(rank >= 2, ShapeError, "x (N, C, …) is needed, got {} dimensions", rank);
  // The node itself may ask for the statistics of the batch and give the moved ones: before version 14 by outputs.
  const bool gives = call.wants(1) || call.wants(2) || call.wants(3) || call.wants(4);
  const bool asks = call.opset() >= 14 ? call.integer("training_mode", 0) != 0
                                       : gives && (call.opset() >= 7 || call.integer("is_test", 0) == 0);
  const double count = static_cast<double>(x.shape().elements()) / static_cast<double>(x.shape()[1]);
  if (asks || (call.graph().training() && count > 1)) {
    const BatchNormResult result = norm_of_batch(x, scale, shift, epsilon);
    call.set(0, result.dst, call.type(0));
    const auto moved = [&](std::size_t running, const Value& now) {
      return pointwise("running_statistics", {call.number_value(running), now},
                       momentum * scalar::input(0) + (1 - momentum) * scalar::input(1));
    };
    if (call.wants(1)) call.set(1, moved(3, result.mean), call.type(3));
    if (call.wants(2)) call.set(2, moved(4, result.variance), call.type(4));
    if (call.wants(3)) call.set(3, result.mean, call.type(3));
    if (call.wants(4)) call.set(4, result.variance, call.type(4));
    if (!asks) move_statistics(call, result, momentum, count);
    return;
  }
  // The mean is subtracted first: x·factor and mean·factor may be far above their difference.
  const auto factors = pointwise("norm_factors", {call.number_value(3), call.number_value(4), scale},
                                 {-scalar::input(0), scalar::input(2) * scalar::rsqrt(scalar::input(1) + epsilon)},
                                 {DType::f32, DType::f32});
  const Value normalised = (x + along_channels(factors[0], rank)) * along_channels(factors[1], rank);
  call.set(0, normalised + along_channels(shift, rank), call.type(0));
  for (std::size_t k = 1; k < 3; ++k) {
    if (call.wants(k)) call.set(k, call.operand(k + 2));
  }
}

void instance_norm_of(Call& call) {
  const Value x = call.number_value(0);
  const std::size_t rank = call.rank(0);
  CONCORD_CHECK(rank >= 3, ShapeError, "x (N, C, …) is needed, got {} dimensions", rank);
  const Value normalised = row_norm(x, 2, call.number("epsilon", 1e-5F)).dst;
  call.set(
      0,
      pointwise("affine",
                {normalised, along_channels(call.number_value(1), rank), along_channels(call.number_value(2), rank)},
                scalar::input(0) * scalar::input(1) + scalar::input(2)),
      call.type(0));
}

void group_norm_of(Call& call) {
  const Value x = call.number_value(0);
  const std::int64_t groups = call.required_integer("num_groups"), channels = call.dims(0).at(1);
  CONCORD_CHECK(groups > 0 && channels % groups == 0, ShapeError, "{} groups of {} channels", groups, channels);
  const Value normalised =
      reshape(row_norm(reshape(x, {call.dims(0)[0], groups, -1}), 2, call.number("epsilon", 1e-5F)).dst, x.shape());
  const auto for_channels = [&](std::size_t i) {  // before version 21: one number for each group
    Value numbers = call.number_value(i);
    if (call.opset() < 21) {
      numbers = reshape(pointwise("expand", {reshape(numbers, {groups, 1})}, scalar::input(0), DType::f32,
                                  Shape{groups, channels / groups}),
                        {channels});
    }
    return along_channels(numbers, call.rank(0));
  };
  call.set(0,
           pointwise("affine", {normalised, for_channels(1), for_channels(2)},
                     scalar::input(0) * scalar::input(1) + scalar::input(2)),
           call.type(0));
}

void layer_norm_of(Call& call) {
  const Value x = call.number_value(0);
  const std::size_t axis = axis_of(call.integer("axis", -1), call.rank(0));
  const RowNormResult result = row_norm(x, static_cast<std::int64_t>(axis), call.number("epsilon", 1e-5F));
  std::vector<Value> operands{result.dst, call.number_value(1)};
  Scalar formula = scalar::input(0) * scalar::input(1);
  if (call.has(2)) {
    operands.push_back(call.number_value(2));
    formula = formula + scalar::input(2);
  }
  call.set(0, pointwise("affine", operands, formula), call.type(0));
  Dims rows = call.dims(0);
  std::fill(rows.begin() + static_cast<std::ptrdiff_t>(axis), rows.end(), 1);
  if (call.wants(1)) call.set(1, reshape(result.mean, Shape(rows)), ElementType::f32);
  if (call.wants(2)) call.set(2, reshape(result.rstd, Shape(rows)), ElementType::f32);
}

// (x − mean)/√(mean of squares − square of mean), by default over all axes but the channels.
void mean_variance_norm(Call& call) {
  const Value x = call.number_value(0);
  const Dims axes = call.integers("axes").value_or(Dims{0, 2, 3});
  const Value centred = x - mean(x, axes, true);
  const Value variance = mean(square(centred), axes, true);
  // The specification adds 1e-9 to the deviation.
  call.set(0, pointwise("normalised", {centred, variance}, scalar::input(0) / (scalar::sqrt(scalar::input(1)) + 1e-9F)),
           call.type(0));
}

void lp_norm_of(Call& call) {
  const Value x = call.number_value(0);
  const std::int64_t axis = call.integer("axis", -1), p = call.integer("p", 2);
  CONCORD_CHECK(p == 1 || p == 2, NotSupported, "a norm with p = {}", p);
  const Value size = p == 1 ? sum(abs(x), {axis}, true) : norm(x, {axis}, true);
  call.set(0,
           pointwise("normalised", {x, size},
                     scalar::select(scalar::equal(scalar::input(1), 0.0F), 0.0F, scalar::input(0) / scalar::input(1))),
           call.type(0));
}

// x/(bias + alpha·mean of squares)^beta, over `size` channels, of which the odd one of an even number comes after.
void local_response_norm(Call& call) {
  const std::int64_t size = call.required_integer("size");
  CONCORD_CHECK(size >= 1 && call.rank(0) >= 2, ShapeError, "{} channels of a tensor of {} dimensions", size,
                call.rank(0));
  const Value x = call.number_value(0);
  const Value images = reshape(square(x), {call.dims(0)[0], 1, call.dims(0)[1], -1});
  const Value padded = pad(images, {0, 0, (size - 1) / 2, 0}, {0, 0, size / 2, 0});
  const Value means = reshape(avg_pool2d(padded, {.kernel = {size, 1}, .stride = {1, 1}}), x.shape());
  const Scalar base = call.number("bias", 1) + call.number("alpha", 1e-4F) * scalar::input(1);
  call.set(
      0,
      pointwise("local_response_norm", {x, means}, scalar::input(0) * scalar::power(base, -call.number("beta", 0.75F))),
      call.type(0));
}

}  // namespace

void add_norms(Table& table) {
  table.add("BatchNormalization", {.run = batch_norm_of});
  table.add("InstanceNormalization", {.run = instance_norm_of});
  table.add("GroupNormalization", {.since = 18, .run = group_norm_of});
  table.add("LayerNormalization", {.since = 17, .run = layer_norm_of});
  table.add("MeanVarianceNormalization", {.run = mean_variance_norm});
  table.add("LpNormalization", {.run = lp_norm_of});
  table.add("LRN", {.run = local_response_norm});
}

}  // namespace concord::onnx
