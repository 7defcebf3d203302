// The zoo: known networks by name, one file for each; zoo.cpp lists them. The command uses it, and so do programs that
// take the name of a network. Names of layers and parameters equal torchvision's if it has the network.
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

/// The task of a network: its outputs → the target.
enum class Task : std::uint8_t {
  classification,  // logits (N, classes) → class index, i32 (N)
  segmentation,    // logits (N, classes, H, W) → class index of each pixel, i32 (N, H, W)
  language,        // logits (N, T, words) → word index at each position, i32 (N, T)
  transcription,  // logits (N, T, classes), class 0 is the blank → sequence of classes, i32 (N, S), padded with zeros
  discrimination,  // logit of "real" (N, 1) → probability
  reconstruction,  // (N, …) → the true values (N, …)
  policy_value     // logits of the moves and a value in (-1, 1): (N, moves + 1) → probabilities and value
};
[[nodiscard]] std::string_view name_of(Task task);
/// Returns whether the loss of the task is a cross entropy with class indices.
[[nodiscard]] bool has_cross_entropy(Task task);
/// The loss of a task. `cross_entropy` sets the options for tasks with class indices.
[[nodiscard]] Loss loss_of(Task task, const loss::CrossEntropy& cross_entropy = {});
/// The type and shape of the target of a batch with these outputs.
[[nodiscard]] TensorSpec target_of(Task task, const Shape& output);

/// Changes to a published network.
struct Variant {
  int classes = 0;      // number of classes, or size of the vocabulary; 0: as published
  bool dropout = true;  // false: without dropout and stochastic depth
  Shape input = {};     // shape of one sample, for networks that depend on it; empty: as published
  /// Adds the auxiliary classifiers of networks that have them (Model::auxiliary). In training their logits follow
  /// those of the network, (N, k·classes); in evaluation they are left out.
  bool auxiliary = false;
  [[nodiscard]] float rate(float published) const { return dropout ? published : 0.0F; }
};

/// A size of a network that its name can change: "mlp:depth=4,width=512".
struct Size {
  std::string_view name;  // depth, width, heads or length
  int published = 1;
  std::string_view meaning;
};

struct Model {
  std::string_view name;
  std::string_view description;
  Shape input;                  // one sample
  int classes = 0;              // as published
  std::int64_t parameters = 0;  // as published; running statistics do not count
  std::function<std::shared_ptr<nn::Module>(const Variant& variant)> make;  // gets a variant with all fields set
  Shape least = input;                                                      // a small sample for tests
  Task task = Task::classification;
  DType dtype = DType::f32;  // of the input
  float auxiliary = 0;       // weight of the loss of each auxiliary classifier; 0: the network has none
  std::vector<Size> sizes = {};
  std::function<Model(std::span<const int> sizes)> of_sizes =
      {};  // takes the values in the order of `sizes`; empty if there are none
};
/// The loss of the model's task. If the variant has auxiliary classifiers, their losses are added with the published
/// weight.
[[nodiscard]] Loss loss_of(const Model& model, const Variant& variant, const loss::CrossEntropy& cross_entropy = {});
/// The type and shape of n samples, of the published shape or of another.
[[nodiscard]] TensorSpec batch_of(const Model& model, std::int64_t n);
[[nodiscard]] TensorSpec batch_of(const Model& model, const Shape& sample, std::int64_t n);

[[nodiscard]] const std::vector<Model>& all();
/// Finds a network by its name, also with sizes: "gpt_tiny:depth=8,length=256". Other sizes are as published. Throws
/// ArgumentError with the list of names or sizes.
[[nodiscard]] const Model& find(std::string_view name);
/// Makes a new network. Throws ArgumentError for an unknown name, a negative number of classes, or auxiliary
/// classifiers that the network does not have.
[[nodiscard]] std::shared_ptr<nn::Module> make(std::string_view name, const Variant& variant = {});

}  // namespace models
}  // namespace concord
