// Tasks: the loss and the target of each.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/models/zoo.hpp"
#include "concord/nn/ctc_loss.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::models {
namespace {

/// The cross entropy of the moves and the squared error of the value (Silver et al., 2017).
Value policy_value_loss(Value prediction, Value target) {
  const std::int64_t moves = prediction.shape()[1] - 1;
  const auto policy = [&](Value x) { return slice(x, 1, 0, moves); };
  const auto value = [&](Value x) { return slice(x, 1, moves, moves + 1); };
  return loss::cross_entropy(policy(prediction), policy(target)) + loss::mse(value(prediction), value(target));
}

/// Rows of logits (N, T, words) and as many words.
Loss language_loss(const loss::CrossEntropy& cross_entropy) {
  return [=](Value logits, Value target) {
    return cross_entropy(reshape(logits, {-1, logits.shape()[-1]}), reshape(target, {-1}));
  };
}

/// A target ends where its zeros begin; every input counts in full.
Value transcription_loss(Value logits, Value target) {
  const Shape samples{logits.shape()[0]};
  const Scalar is_label = scalar::select(scalar::equal(scalar::input(0), 0.0F), 0.0F, 1.0F);
  const Value target_lengths = cast(sum(pointwise("is_label", {target}, is_label), {1}), DType::i32);
  const Value input_lengths = cast(full(logits.graph(), samples, static_cast<float>(logits.shape()[1])), DType::i32);
  return loss::ctc(transpose(logits, {1, 0, 2}), target, input_lengths, target_lengths);
}

}  // namespace

std::string_view name_of(Task task) {
  switch (task) {
    case Task::classification: return "classification";
    case Task::segmentation: return "segmentation";
    case Task::language: return "language";
    case Task::transcription: return "transcription";
    case Task::discrimination: return "discrimination";
    case Task::reconstruction: return "reconstruction";
    case Task::policy_value: return "policy and value";
  }
  throw ArgumentError("unknown task");
}

bool has_cross_entropy(Task task) {
  return task == Task::classification || task == Task::segmentation || task == Task::language;
}

Loss loss_of(Task task, const loss::CrossEntropy& cross_entropy) {
  switch (task) {
    case Task::classification:
    case Task::segmentation: return cross_entropy;
    case Task::language: return language_loss(cross_entropy);
    case Task::transcription: return transcription_loss;
    case Task::discrimination: return loss::bce_with_logits;
    case Task::reconstruction: return loss::mse;
    case Task::policy_value: return policy_value_loss;
  }
  throw ArgumentError("unknown task");
}

Loss loss_of(const Model& model, const Variant& variant, const loss::CrossEntropy& cross_entropy) {
  const Loss main = loss_of(model.task, cross_entropy);
  if (!variant.auxiliary) return main;
  return [main, classes = variant.classes > 0 ? variant.classes : model.classes, weight = model.auxiliary](
             Value logits, Value target) {
    const std::int64_t width = logits.shape()[1];
    CONCORD_CHECK(width % classes == 0, ShapeError, "{} logits are not those of classifiers of {} classes", width,
                  classes);
    Value loss = main(slice(logits, 1, 0, classes), target);
    for (std::int64_t first = classes; first < width; first += classes) {
      loss = loss + weight * main(slice(logits, 1, first, first + classes), target);
    }
    return loss;
  };
}

TensorSpec target_of(Task task, const Shape& output) {
  switch (task) {
    case Task::classification: return {DType::i32, Shape{output[0]}};
    case Task::segmentation: return {DType::i32, Shape{output[0], output[2], output[3]}};
    case Task::language: return {DType::i32, Shape{output[0], output[1]}};
    case Task::transcription: return {DType::i32, Shape{output[0], std::max<std::int64_t>(1, output[1] / 2)}};
    case Task::discrimination:
    case Task::reconstruction:
    case Task::policy_value: return {DType::f32, output};
  }
  throw ArgumentError("unknown task");
}

}  // namespace concord::models
