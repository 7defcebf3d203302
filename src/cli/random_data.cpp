// Random data: features of the network's type, targets of its task.
#include "random_data.hpp"

#include <algorithm>

#include "concord/core/philox.hpp"

namespace concord::cli {
namespace {

class Noise {
 public:
  Noise(std::uint64_t seed, std::string_view purpose) : words_(Philox(seed, philox_purpose(purpose))) {}

  /// Whole numbers in [first, end).
  void fill(std::span<std::int32_t> values, std::int32_t first, std::int32_t end) {
    for (std::int32_t& value : values) {
      value = first + static_cast<std::int32_t>(words_.below(static_cast<std::uint32_t>(end - first)));
    }
  }
  /// Numbers in [low, low + 1).
  void fill(std::span<float> values, float low) {
    for (float& value : values) value = low + static_cast<float>(words_.next() >> 8) * 0x1p-24F;
  }

 private:
  PhiloxSequence words_;
};

/// The target that the network's outputs for n samples are held against.
TensorSpec target_spec(const models::Model& model, const Shape& sample, std::int64_t n) {
  Graph graph;
  graph.set_training(false);
  const auto network = models::make(model.name, {.input = sample});
  const Value output = (*network)(graph.input("features", models::batch_of(model, sample, 1)));
  TensorSpec target = models::target_of(model.task, output.shape());
  std::vector<std::int64_t> dims(target.shape.dims().begin(), target.shape.dims().end());
  dims[0] = n;
  return {target.dtype, Shape(std::move(dims))};
}

/// Rows of probabilities and, last in each, a value in [-1/2, 1/2).
void fill_policy(Noise& noise, Tensor& target) {
  const auto width = static_cast<std::size_t>(target.shape()[1]);
  for (std::size_t row = 0; row < static_cast<std::size_t>(target.shape()[0]); ++row) {
    const auto values = target.values<float>().subspan(row * width, width);
    noise.fill(values.last(1), -0.5F);
    const auto moves = values.first(width - 1);
    noise.fill(moves, 0);
    float sum = 0;
    for (const float move : moves) sum += move;
    for (float& move : moves) move /= sum;
  }
}

Tensor random_target(const models::Model& model, const Tensor& features, const TensorSpec& spec, std::uint64_t seed) {
  using models::Task;
  Noise noise(seed, "cli.random.target");
  Tensor target(spec);
  if (spec.dtype == DType::i32) {
    const bool has_blank = model.task == Task::transcription;
    noise.fill(target.values<std::int32_t>(), has_blank ? 1 : 0, model.classes);
  } else if (model.task == Task::policy_value) {
    fill_policy(noise, target);
  } else if (model.task == Task::reconstruction && spec == features.spec()) {
    return features;
  } else {
    noise.fill(target.values<float>(), 0);
  }
  return target;
}

}  // namespace

Dataset random_data(const models::Model& model, const Shape& sample, std::int64_t n, std::uint64_t seed) {
  if (model.task == models::Task::classification && model.dtype == DType::f32) {
    return data::synthetic(sample, model.classes, n, seed);
  }
  Tensor features(models::batch_of(model, sample, n));
  Noise noise(seed, "cli.random.features");
  if (model.dtype == DType::i32) {
    noise.fill(features.values<std::int32_t>(), 0, model.classes);
  } else {
    noise.fill(features.values<float>(), -0.5F);
  }
  Dataset dataset;
  dataset.name = "random";
  dataset.labels = random_target(model, features, target_spec(model, sample, n), seed);
  dataset.features = std::move(features);
  const bool has_labels = model.task == models::Task::classification || model.task == models::Task::language;
  dataset.classes = has_labels ? model.classes : 0;
  return dataset;
}

}  // namespace concord::cli
