// Networks in files as models of the command.
#include "concord/cli/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "concord/cli/counted.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

using onnx::Declaration;

constexpr std::string_view kOnnx = ".onnx";

struct ModelFile {
  std::string path, description;
  onnx::Network network;  // for its declarations
  models::Model model = {};
};

/// By path.
std::map<std::string, ModelFile, std::less<>>& files() {
  static std::map<std::string, ModelFile, std::less<>> files;
  return files;
}

const ModelFile* find_file(const models::Model& model) {
  const auto found = files().find(model.name);
  return found == files().end() ? nullptr : &found->second;
}

/// The sizes behind the first, which is that of the batch; nothing if one of them is free.
std::optional<Shape> sample_of(const Declaration& input) {
  std::vector<std::int64_t> dims;
  if (!input.shape || input.shape->empty()) return std::nullopt;
  for (std::size_t i = 1; i < input.shape->size(); ++i) {
    if ((*input.shape)[i].size < 1) return std::nullopt;
    dims.push_back((*input.shape)[i].size);
  }
  return Shape(std::move(dims));
}

/// The classes of a network with one output (N, classes); 0 for another.
int classes_of(const std::vector<Declaration>& outputs) {
  if (outputs.size() != 1 || onnx::dtype_of(outputs[0].type) != DType::f32) return 0;
  const auto& shape = outputs[0].shape;
  return shape && shape->size() == 2 && (*shape)[1].size > 1 ? static_cast<int>((*shape)[1].size) : 0;
}

const models::Model& read_file(std::string path) {
  ModelFile file{path, {}, onnx::load(path)};
  CONCORD_CHECK(!file.network.inputs().empty() && !file.network.outputs().empty(), ArgumentError,
                "{} has no input or no output", path);
  ModelFile& kept = files().emplace(path, std::move(file)).first->second;
  const Declaration& input = kept.network.inputs()[0];
  kept.description = fmt::format("ONNX, {}, {}", counted(kept.network.inputs().size(), "input"),
                                 counted(kept.network.outputs().size(), "output"));
  models::Model& model = kept.model;
  model.name = kept.path;
  model.description = kept.description;
  model.input = sample_of(input).value_or(Shape{});
  model.classes = classes_of(kept.network.outputs());
  model.make = [path = kept.path](const models::Variant&) -> std::shared_ptr<nn::Module> {
    return std::make_shared<onnx::Network>(onnx::load(path));
  };
  model.least = model.input;
  model.task = model.classes > 0 ? models::Task::classification : models::Task::reconstruction;
  model.dtype = onnx::dtype_of(input.type);
  return model;
}

/// Whether a softmax gives the classes, perhaps in another shape: before version 13 ONNX's sees a matrix.
bool is_softmax(Value output) {
  const std::int64_t classes = output.shape()[-1];
  while (output.node().op != nullptr && output.node().op->name() == "reshape") output = output.node().inputs[0];
  return output.node().op != nullptr && output.node().op->name() == "softmax" && output.shape()[-1] == classes;
}

/// Softmax and cross entropy, or if the network ends with a softmax, the cross entropy of its probabilities.
Loss classes_loss(const loss::CrossEntropy& options) {
  return [options](Value output, Value target) {
    if (!is_softmax(output) || options.label_smoothing != 0) return options(output, target);
    return loss::Nll{options.reduction, options.weights, options.ignore_index}(
        log(pointwise("at_least", {output}, scalar::maximum(scalar::input(0), 0x1p-100F))), target);
  };
}

/// The outputs that a loss can be taken of.
std::vector<std::string> trained_outputs(const onnx::Network& network) {
  std::vector<std::string> names;
  for (const Declaration& output : network.outputs()) {
    if (onnx::dtype_of(output.type) == DType::f32) names.push_back(output.name);
  }
  return names;
}

/// The samples of a batch that is only traced.
std::int64_t least_batch(const models::Model& model) { return std::max<std::int64_t>(fixed_batch(model), 1); }

}  // namespace

bool names_model(std::string_view text) {
  if (text.ends_with(kOnnx)) return true;
  try {
    static_cast<void>(models::find(text));
    return true;
  } catch (const ArgumentError&) {
    return false;
  }
}

const models::Model& find_model(std::string_view text) {
  if (!text.ends_with(kOnnx)) {
    try {
      return models::find(text);
    } catch (const ArgumentError&) {
      std::error_code unknown;
      CONCORD_CHECK(!std::filesystem::is_regular_file(text, unknown), ArgumentError,
                    "{} is a file and no network; name the network, and give a file of its weights with --weights",
                    printable(text));
      throw;
    }
  }
  const auto found = files().find(text);
  return found != files().end() ? found->second.model : read_file(std::string(text));
}

std::shared_ptr<nn::Module> make_network(const models::Model& model, const models::Variant& variant) {
  if (file_of(model) == nullptr) return models::make(model.name, variant);
  CONCORD_CHECK(!variant.auxiliary && (variant.classes == 0 || variant.classes == model.classes), ArgumentError,
                "{}: the classes of a network in a file cannot be changed, nor can it have auxiliary classifiers",
                model.name);
  return model.make(variant);
}

const onnx::Network* file_of(const models::Model& model) {
  const ModelFile* const file = find_file(model);
  return file == nullptr ? nullptr : &file->network;
}

std::string text_of_declarations(const std::vector<Declaration>& all) {
  std::string text;
  for (const Declaration& one : all) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", printable(one.name), printable(one.str()));
  }
  return text;
}

bool has_published_sample(const models::Model& model) {
  const ModelFile* const file = find_file(model);
  return file == nullptr || sample_of(file->network.inputs()[0]).has_value();
}

Shape published_sample(const models::Model& model) {
  const ModelFile* const file = find_file(model);
  if (file == nullptr) return model.input;
  const Declaration& input = file->network.inputs()[0];
  const std::optional<Shape> sample = sample_of(input);
  CONCORD_CHECK(sample, ArgumentError,
                "{}: the input {} is {}; give the sizes of a sample, without the batch, such as --input 3x48x48",
                model.name, input.name, input.str());
  return *sample;
}

Shape published_image(const models::Model& model, std::int64_t side) {
  const auto is_image = [](std::int64_t channels) { return channels == 1 || channels == 3; };
  const ModelFile* const file = find_file(model);
  if (file == nullptr) {
    CONCORD_CHECK(model.input.rank() == 3 && is_image(model.input[0]), ArgumentError,
                  "{} takes samples of shape {}, not images", model.name, model.input.str());
    return model.input;
  }
  const Declaration& input = file->network.inputs()[0];
  CONCORD_CHECK(
      input.shape && input.shape->size() == 4 && is_image((*input.shape)[1].size), ArgumentError,
      "{}: the input {} is {}, not images [N, C, H, W] of one or three channels; `concord run` takes any input",
      model.name, input.name, input.str());
  const std::int64_t height = (*input.shape)[2].size, width = (*input.shape)[3].size;
  CONCORD_CHECK(side > 0 || (height > 0 && width > 0), ArgumentError,
                "{}: the input {} is {}; give the height and width of images, such as --image 224", model.name,
                input.name, input.str());
  return Shape{(*input.shape)[1].size, height > 0 ? height : side, width > 0 ? width : side};
}

std::int64_t fixed_batch(const models::Model& model) {
  const ModelFile* const file = find_file(model);
  if (file == nullptr) return 0;
  const auto& shape = file->network.inputs()[0].shape;
  return shape && !shape->empty() ? std::max<std::int64_t>((*shape)[0].size, 0) : 0;
}

bool gives_probabilities(const models::Model& model, nn::Module& network, const Samples& samples) {
  if (find_file(model) == nullptr || model.classes == 0) return false;
  Graph graph;
  graph.set_training(false);
  return is_softmax(network(train::add_inputs(graph, train::streamed_source(samples), least_batch(model)).features)[0]);
}

train::Source source_of(const models::Model& model, nn::Module& network, const Shape& sample) {
  train::Source source;
  const onnx::Network* const file = file_of(model);
  if (file == nullptr) {
    source.features.push_back({{}, {model.dtype, sample}});
  } else {
    for (const Declaration& input : file->inputs()) {
      const bool is_first = source.features.empty();
      const std::optional<Shape> shape = is_first ? sample : sample_of(input);
      CONCORD_CHECK(shape, ArgumentError, "{}: the input {} is {}; only the free sizes of the first input can be given",
                    model.name, input.name, input.str());
      source.features.push_back({input.name, {onnx::dtype_of(input.type), *shape}});
    }
  }
  Graph graph;
  graph.set_training(false);
  const Values outputs = network(train::add_inputs(graph, source, least_batch(model)).features);
  const auto add_target = [&](const std::string& name, const Value& output, int classes) {
    const TensorSpec target = models::target_of(model.task, output.shape());
    const auto dims = target.shape.dims();
    source.labels.push_back({name, {target.dtype, Shape({dims.begin() + 1, dims.end()})}, 1, 0, classes});
  };
  if (file == nullptr || model.classes > 0) {
    add_target({}, outputs[0], 0);
  } else {
    for (const std::string& name : trained_outputs(*file)) add_target(name, outputs[name], 0);
  }
  return source;
}

std::int64_t parameters_of(const models::Model& model, nn::Module& network, const train::Source& source) {
  if (file_of(model) == nullptr) return model.parameters;
  Graph graph;
  static_cast<void>(network(train::add_inputs(graph, source, least_batch(model)).features));
  std::int64_t elements = 0;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) elements += variable->spec.shape.elements();
  }
  return elements;
}

Objective objective_of(const models::Model& model, const models::Variant& variant,
                       const loss::CrossEntropy& cross_entropy) {
  const onnx::Network* const file = file_of(model);
  if (file == nullptr) return models::loss_of(model, variant, cross_entropy);
  if (model.classes > 0) return classes_loss(cross_entropy);
  std::vector<OutputLoss> losses;
  for (const std::string& name : trained_outputs(*file)) losses.push_back({name, loss::mse});
  CONCORD_CHECK(!losses.empty(), ArgumentError, "{} has no output of numbers that a loss can be taken of", model.name);
  return losses;
}

}  // namespace concord::cli
