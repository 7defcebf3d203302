// The zoo: known networks by name. Each stands in a file of its own; zoo.cpp lists them. Used by the command and by
// programs that take a network's name. Names of layers, and so of parameters, are torchvision's where it has the
// network.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"

namespace concord::models {

/// What a network is trained for: its outputs and, behind the arrow, the target.
enum class Task : std::uint8_t {
  classification,  // logits (N, classes) → class, i32 (N)
  reconstruction,  // (N, …) of the input's shape → what should have come in
  policy_value     // logits of the moves, then a value in (-1, 1): (N, moves + 1) → probabilities and value
};
[[nodiscard]] std::string_view name_of(Task task);
[[nodiscard]] Loss loss_of(Task task);
/// Type and shape of the target of a batch with these outputs.
[[nodiscard]] TensorSpec target_of(Task task, const Shape& output);

/// What may differ from the published network.
struct Variant {
  int classes = 0;      // 0: as published
  bool dropout = true;  // false: neither dropout nor stochastic depth
  [[nodiscard]] float rate(float published) const { return dropout ? published : 0.0F; }
};

struct Model {
  std::string_view name;
  std::string_view description;
  Shape input;                  // one sample, f32
  int classes = 0;              // as published
  std::int64_t parameters = 0;  // with so many classes; running statistics not counted
  std::function<std::shared_ptr<nn::Module>(const Variant& variant)> make;  // with variant.classes above 0
  Shape least = input;                                                      // the smallest sample worth trying it with
  Task task = Task::classification;
};

[[nodiscard]] const std::vector<Model>& all();
/// Throws ArgumentError with the names there are.
[[nodiscard]] const Model& find(std::string_view name);
/// A new network. Throws ArgumentError for an unknown name or a negative number of classes.
[[nodiscard]] std::shared_ptr<nn::Module> make(std::string_view name, const Variant& variant = {});

[[nodiscard]] Model mlp();
[[nodiscard]] Model lenet();
[[nodiscard]] Model lenet5();
[[nodiscard]] Model alexnet();
[[nodiscard]] Model overfeat();
[[nodiscard]] std::vector<Model> vgg();  // 11, 13, 16, 19, each also with batch norm
[[nodiscard]] Model nin();
[[nodiscard]] Model googlenet();
[[nodiscard]] Model inception_v3();
[[nodiscard]] Model inception_resnet_v2();
[[nodiscard]] Model resnet20();
[[nodiscard]] std::vector<Model> resnet();  // 18 … 101, resnext50_32x4d, wide_resnet50_2
[[nodiscard]] Model densenet121();
[[nodiscard]] Model squeezenet1_1();
[[nodiscard]] Model mobilenet_v2();
[[nodiscard]] Model mobilenet_v3_large();
[[nodiscard]] Model shufflenet_v2_x1_0();
[[nodiscard]] Model efficientnet_b0();
[[nodiscard]] Model alphago_zero();
[[nodiscard]] Model denoising_autoencoder();

}  // namespace concord::models
