// Tasks: the loss and the target of each.
#include "concord/core/check.hpp"
#include "concord/models/zoo.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::models {
namespace {

/// The cross entropy of the moves and the squared error of the value (Silver et al., 2017).
Value policy_value_loss(Value prediction, Value target) {
  const std::int64_t moves = prediction.shape()[1] - 1;
  const auto policy = [&](Value x) { return slice(x, 1, 0, moves); };
  const auto value = [&](Value x) { return slice(x, 1, moves, moves + 1); };
  return loss::cross_entropy(policy(prediction), policy(target)) + loss::mse(value(prediction), value(target));
}

/// Rows of logits (…, classes) and as many classes.
Value mean_cross_entropy(Value logits, Value target) {
  const std::int64_t classes = logits.shape()[-1];
  return loss::cross_entropy(reshape(logits, {-1, classes}), reshape(target, {-1}));
}

Value segmentation_loss(Value prediction, Value target) {
  return mean_cross_entropy(transpose(prediction, {0, 2, 3, 1}), target);
}

}  // namespace

std::string_view name_of(Task task) {
  switch (task) {
    case Task::classification: return "classification";
    case Task::segmentation: return "segmentation";
    case Task::language: return "language";
    case Task::discrimination: return "discrimination";
    case Task::reconstruction: return "reconstruction";
    case Task::policy_value: return "policy and value";
  }
  throw ArgumentError("unknown task");
}

Loss loss_of(Task task) {
  switch (task) {
    case Task::classification: return loss::cross_entropy;
    case Task::segmentation: return segmentation_loss;
    case Task::language: return mean_cross_entropy;
    case Task::discrimination: return loss::bce_with_logits;
    case Task::reconstruction: return loss::mse;
    case Task::policy_value: return policy_value_loss;
  }
  throw ArgumentError("unknown task");
}

TensorSpec target_of(Task task, const Shape& output) {
  switch (task) {
    case Task::classification: return {DType::i32, Shape{output[0]}};
    case Task::segmentation: return {DType::i32, Shape{output[0], output[2], output[3]}};
    case Task::language: return {DType::i32, Shape{output[0], output[1]}};
    default: return {DType::f32, output};
  }
}

}  // namespace concord::models
