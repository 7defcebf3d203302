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

}  // namespace

std::string_view name_of(Task task) {
  switch (task) {
    case Task::classification: return "classification";
    case Task::reconstruction: return "reconstruction";
    case Task::policy_value: return "policy and value";
  }
  throw ArgumentError("unknown task");
}

Loss loss_of(Task task) {
  switch (task) {
    case Task::classification: return loss::cross_entropy;
    case Task::reconstruction: return loss::mse;
    case Task::policy_value: return policy_value_loss;
  }
  throw ArgumentError("unknown task");
}

TensorSpec target_of(Task task, const Shape& output) {
  if (task == Task::classification) return {DType::i32, Shape{output[0]}};
  return {DType::f32, output};
}

}  // namespace concord::models
