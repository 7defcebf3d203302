// The network for the samples of a data set: which ones fit, its outputs and what it is trained for.
#include <fmt/format.h>

#include <algorithm>

#include "concord/cli/audio_data.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/shape_advice.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/train/trace.hpp"

namespace concord::cli {
namespace {

/// Throws NotSupported if the network in a file takes other inputs than these samples have, or if they have classes and
/// it does not give classes.
void check_file(const onnx::Network& file, const models::Model& model, const std::string& data,
                const Samples& samples) {
  const std::vector<ColumnSpec> features = samples.feature_specs(), labels = samples.label_specs();
  const DType stored = features[0].spec.dtype, fed = stored == DType::u8 ? DType::f32 : stored;
  const bool has_same_inputs = file.inputs().size() <= features.size() && onnx::dtype_of(file.inputs()[0].type) == fed;
  CONCORD_CHECK(has_same_inputs, NotSupported, "{} has one input of type {} for a network, and {} takes {}", data,
                name_of(fed), printable(model.name), text_of_declarations(file.inputs()));
  CONCORD_CHECK(labels.empty() || labels[0].classes == 0 || model.classes > 0, NotSupported,
                "{} has classes, for which a network needs one output of floats (N, classes); {} has {}", data,
                printable(model.name), text_of_declarations(file.outputs()));
}

}  // namespace

void DataSource::check_fits(const Samples& samples) const {
  if (const onnx::Network* const file = file_of(model_)) check_file(*file, model_, spec_.text, samples);
  const bool has_transcripts = spec_.kind == "audio" && model_.task == models::Task::transcription;
  const models::Task wanted = has_masks() ? models::Task::segmentation : models::Task::classification;
  CONCORD_CHECK(model_.task == wanted || has_transcripts || file_of(model_) != nullptr, ArgumentError,
                "{} is a model for {}; {} has classes of {}", model_.name, models::name_of(model_.task), spec_.text,
                has_masks() ? "pixels" : "samples");
  const Shape shape = samples.feature_specs()[0].spec.shape;
  // A file may leave sizes open: its layers say what does not fit. So do those of a network that may have other sizes.
  CONCORD_CHECK(spec_.is_own() || file_of(model_) != nullptr || shape == model_.input, ArgumentError,
                "{} has samples of shape {}, but the model needs {}.{}", spec_.text, shape.str(), model_.input.str(),
                shape_advice(model_, shape));
  const std::vector<ColumnSpec> labels = samples.label_specs();
  CONCORD_CHECK(
      labels.size() < 2 || file_of(model_) != nullptr || !label_outputs().empty(), ArgumentError,
      "{} has {} columns of labels; the command trains on several only from tables (csv:FILE,label=A,B). Keep "
      "one label on each line of the list",
      spec_.text, labels.size());
  const bool has_rows_of_classes = !labels.empty() && labels[0].classes > 0 && labels[0].spec.shape.rank() == 1;
  CONCORD_CHECK(!has_rows_of_classes || options_.is_as_stored || file_of(model_) != nullptr, ArgumentError,
                "{} has {} whole numbers as the label of a sample, and {} takes one, the number of its class: (N). Of "
                "one-hot rows give the column of the 1, as numpy.argmax(y, 1) does",
                spec_.text, labels[0].spec.shape[0], model_.name);
  CONCORD_CHECK(!trained_.has_targets || labels.empty() || labels[0].spec.dtype == DType::f32, ArgumentError,
                "the network predicts numbers, and {} has classes: give labels with a decimal point", spec_.text);
  const int classes = labels.empty() ? 0 : labels[0].classes;
  const int most = trained_.classes > 0 ? trained_.classes : model_.classes;
  CONCORD_CHECK(classes <= most || (can_change_classes() && trained_.classes == 0), ArgumentError,
                "{} has {} classes, but the model has {}", spec_.text, classes, most);
}

bool DataSource::has_masks() const {
  if (spec_.kind != "tar") return !spec_.option("masks").empty();
  return !spec_.option("classes").empty() || model_.task == models::Task::segmentation;
}

bool DataSource::can_change_classes() const { return spec_.is_own() && file_of(model_) == nullptr; }

models::Variant DataSource::variant_for(const Samples& samples) const {
  models::Variant variant{.input = samples.feature_specs()[0].spec.shape};
  const std::vector<ColumnSpec> labels = samples.label_specs();
  if (!labels.empty() && (model_.task == models::Task::language || can_change_classes())) {
    variant.classes = labels[0].classes;
    // A network for classes has an output for each number to be predicted.
    if (labels[0].spec.dtype == DType::f32) variant.classes = static_cast<int>(labels[0].spec.shape.elements());
    if (const std::vector<LabelOutput> outputs = label_outputs(); !outputs.empty())
      variant.classes = classes_of(outputs);
    if (model_.task == models::Task::transcription) variant.classes = classes_of_alphabet(trained_.alphabet);
  }
  if (trained_.classes > 0 && file_of(model_) == nullptr) variant.classes = trained_.classes;
  return variant;
}

/// A network of the library may take other sizes than the published one. Only its layers know.
void DataSource::check_takes(nn::Module& network, const Shape& sample) const {
  if (!spec_.is_own() || file_of(model_) != nullptr || sample == model_.input) return;
  train::Source source;
  source.features.push_back({{}, {model_.dtype, sample}});
  Graph graph;
  graph.set_training(false);
  try {
    static_cast<void>(network(train::add_inputs(graph, source, 1).features));
  } catch (const ShapeError& error) {
    throw ArgumentError(fmt::format("{} is made for samples of shape {}, and {} has {}{} ({}).{}", model_.name,
                                    model_.input.str(), spec_.text, sample.str(),
                                    spec_.is_images() ? "; without --image pictures get the size of the network" : "",
                                    error.what(), shape_advice(model_, sample)));
  }
}

std::vector<LabelOutput> DataSource::label_outputs() const {
  if (!trained_.table) return {};
  std::vector<LabelOutput> outputs = label_outputs_of(*trained_.table);
  if (outputs.size() < 2) outputs.clear();
  return outputs;
}

std::shared_ptr<nn::Module> DataSource::make(const models::Variant& variant) const {
  const std::vector<LabelOutput> outputs = label_outputs();
  CONCORD_CHECK(outputs.empty() || (file_of(model_) == nullptr && !variant.auxiliary), ArgumentError,
                "{}: {} labels and targets need a network of `concord models`, without --auxiliary; name one column in "
                "label= or target= and leave the others out with drop=",
                model_.name, outputs.size());
  std::shared_ptr<nn::Module> network = make_network(model_, variant);
  check_takes(*network, variant.input);
  if (trained_.table && file_of(model_) == nullptr) network = with_units(network, *trained_.table);
  return outputs.empty() ? network : with_outputs(network, outputs);
}

std::shared_ptr<nn::Module> DataSource::network_for(const Samples& samples) const { return make(variant_for(samples)); }

bool DataSource::depends_on_network() const {
  return spec_.is_images() || spec_.kind == "random" || spec_.kind == "text";
}

std::shared_ptr<nn::Module> DataSource::network_for_images() const {
  const data::ImageTransform how = *transform();
  models::Variant variant{.input = Shape{how.channels, how.height, how.width}};
  if (file_of(model_) == nullptr) variant.classes = trained_.classes;
  return make(variant);
}

bool DataSource::predicts_targets(const Samples& samples) const {
  const std::vector<ColumnSpec> labels = samples.label_specs();
  const bool are_own = spec_.is_own() || trained_.table;
  return are_own && file_of(model_) == nullptr && !labels.empty() && labels[0].spec.dtype == DType::f32;
}

Objective DataSource::objective_for(const Samples& samples, const models::Variant& variant,
                                    const loss::CrossEntropy& cross_entropy) const {
  if (has_masks()) {
    loss::CrossEntropy ignoring = cross_entropy;
    ignoring.ignore_index = data::ImageTransform().mask_fill;
    return objective_of(model_, variant, ignoring);
  }
  if (const std::vector<LabelOutput> outputs = label_outputs(); !outputs.empty()) {
    return objective_of_outputs(outputs, *trained_.table, cross_entropy);
  }
  if (!predicts_targets(samples)) return objective_of(model_, variant, cross_entropy);
  return trained_.table ? Objective(loss_of_targets(*trained_.table)) : Objective(loss::mse);
}

bool DataSource::is_told_by_name(const Samples& samples) const {
  const auto has_units = [](const data::CsvEncoding& table) {
    return std::ranges::any_of(label_outputs_of(table), [](const LabelOutput& output) { return !output.has_classes; });
  };
  if (trained_.table && file_of(model_) == nullptr && has_units(*trained_.table)) return false;
  return !has_masks() && label_outputs().empty() && !predicts_targets(samples);
}

Trained DataSource::trained(const Samples& samples) const {
  Trained trained;
  trained.network = model_.name;
  trained.classes = variant_for(samples).classes;
  trained.has_targets = !trained_.table && predicts_targets(samples);
  trained.alphabet = trained_.alphabet;
  trained.bpe = trained_.bpe;
  trained.table = trained_.table;
  trained.audio = trained_.audio;
  if (const auto how = transform()) trained.preprocessing = data::preprocessing_of(*how, samples.class_names);
  return trained;
}

}  // namespace concord::cli
