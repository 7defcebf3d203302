// The zoo: known networks by name. Each stands in a file of its own; zoo.cpp lists them. Used by the command and by
// programs that take a network's name. Names of layers, and so of parameters, are torchvision's where it has the
// network.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace models {

/// What a network is trained for: its outputs and, behind the arrow, the target.
enum class Task : std::uint8_t {
  classification,  // logits (N, classes) → class, i32 (N)
  segmentation,    // logits (N, classes, H, W) → class of each pixel, i32 (N, H, W)
  language,        // logits (N, T, words) → word at each place, i32 (N, T)
  transcription,   // logits (N, T, classes), class 0 the blank → classes in order, i32 (N, S), then zeros
  discrimination,  // logit of "real" (N, 1) → probability
  reconstruction,  // (N, …) → what should have come out
  policy_value     // logits of the moves, then a value in (-1, 1): (N, moves + 1) → probabilities and value
};
[[nodiscard]] std::string_view name_of(Task task);
/// Whether the task's loss is a cross entropy of class indices.
[[nodiscard]] bool has_cross_entropy(Task task);
/// `cross_entropy` is what the losses of such tasks are made of.
[[nodiscard]] Loss loss_of(Task task, const loss::CrossEntropy& cross_entropy = {});
/// Type and shape of the target of a batch with these outputs.
[[nodiscard]] TensorSpec target_of(Task task, const Shape& output);

/// What may differ from the published network.
struct Variant {
  int classes = 0;      // 0: as published; of a language model, its vocabulary
  bool dropout = true;  // false: neither dropout nor stochastic depth
  Shape input = {};     // the sample it is built for, where that matters; empty: as published
  /// With the auxiliary classifiers that some networks are trained with (Model::auxiliary): in training their logits
  /// follow those of the network, (N, k·classes); in evaluation they are left out.
  bool auxiliary = false;
  [[nodiscard]] float rate(float published) const { return dropout ? published : 0.0F; }
};

/// A number that a network may be built with in place of its published one: "mlp:depth=4,width=512".
struct Size {
  std::string_view name;  // depth, width, heads, length
  int published = 1;
  std::string_view meaning;
};

struct Model {
  std::string_view name;
  std::string_view description;
  Shape input;                  // one sample
  int classes = 0;              // as published
  std::int64_t parameters = 0;  // with so many classes; running statistics not counted
  std::function<std::shared_ptr<nn::Module>(const Variant& variant)> make;  // of a variant with all filled in
  Shape least = input;  // a small sample that shows what it does, for tests
  Task task = Task::classification;
  DType dtype = DType::f32;  // of the input
  float auxiliary = 0;       // weight of the loss of each auxiliary classifier; 0: there are none
  std::vector<Size> sizes = {};
  std::function<Model(std::span<const int> sizes)> of_sizes =
      {};  // in the order of `sizes`; empty where there are none
};
/// The loss of the model's task; for a variant with auxiliary classifiers theirs is added with the published weight.
[[nodiscard]] Loss loss_of(const Model& model, const Variant& variant, const loss::CrossEntropy& cross_entropy = {});
/// Type and shape of n samples, of the published shape or of another.
[[nodiscard]] TensorSpec batch_of(const Model& model, std::int64_t n);
[[nodiscard]] TensorSpec batch_of(const Model& model, const Shape& sample, std::int64_t n);

[[nodiscard]] const std::vector<Model>& all();
/// A name of the list, or one with sizes behind it, "gpt_tiny:depth=8,length=256"; what is not named is as published.
/// Throws ArgumentError with the names, or the sizes, that there are.
[[nodiscard]] const Model& find(std::string_view name);
/// A new network. Throws ArgumentError for an unknown name, a negative number of classes, or auxiliary classifiers that
/// the network does not have.
[[nodiscard]] std::shared_ptr<nn::Module> make(std::string_view name, const Variant& variant = {});

}  // namespace models
}  // namespace concord
