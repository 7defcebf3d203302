// concord export: a network, or a step of its training, as an ONNX file.
#include "concord/onnx/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "concord/cli/counted.hpp"
#include "concord/cli/export_check.hpp"
#include "concord/cli/label_outputs.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/random_data.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/train/source.hpp"
#include "concord/weights/load.hpp"

namespace concord::cli {
namespace {

constexpr const char* kByImport = "concord";
constexpr const char* kByOnnxruntime = "onnxruntime";
// Relative to the largest value of an output.
constexpr double kLargestDifference = 1e-4, kLargestLossDifference = 1e-5;
constexpr std::size_t kCheckedSteps = 5;

struct ExportArguments {
  TrainingOptions training;
  DeviceOption device;
  PermitOption permit;
  std::string weights, out, input, batch = "1", verify;
  int classes = 0, opset = 17;
  bool is_training = false, json = false;

  [[nodiscard]] bool has_free_batch() const { return batch[0] < '0' || batch[0] > '9'; }
  /// The batch that checks run with.
  [[nodiscard]] std::int64_t samples() const {
    if (has_free_batch()) return 3;
    const auto samples = number_in_text<std::int64_t>(batch);
    CONCORD_CHECK(samples && *samples >= 1, ArgumentError, "--batch {}: expected a number of samples, or a name",
                  batch);
    return *samples;
  }
};

/// Samples for each input of a file, the first of this shape: numbers in [-1/2, 1/2), whole numbers 0 and 1, which any
/// table has a row for.
std::vector<std::pair<std::string, Tensor>> random_inputs(const models::Model& model, const Shape& sample,
                                                          std::int64_t samples, std::uint64_t seed) {
  std::vector<std::pair<std::string, Tensor>> inputs;
  PhiloxSequence words(Philox(seed, philox_purpose("cli.export.inputs")));
  for (const onnx::Declaration& input : file_of(model)->inputs()) {
    std::vector<std::int64_t> dims{samples};
    if (inputs.empty()) {
      dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
    } else {
      bool is_open = !input.shape || input.shape->empty();
      for (std::size_t i = 1; !is_open && i < input.shape->size(); ++i) {
        dims.push_back((*input.shape)[i].size);
        is_open = dims.back() < 1;
      }
      CONCORD_CHECK(!is_open, ArgumentError,
                    "{}: the input {} is {}; only the free sizes of the first input can be given", model.name,
                    input.name, input.str());
    }
    Tensor values(onnx::dtype_of(input.type), Shape(dims));
    const auto fill = [&](auto numbers, const auto& number) { std::ranges::generate(numbers, number); };
    switch (values.dtype()) {
      case DType::f32:
        fill(values.values<float>(), [&] { return static_cast<float>(words.next() >> 8U) * 0x1p-24F - 0.5F; });
        break;
      case DType::i32:
        fill(values.values<std::int32_t>(), [&] { return static_cast<std::int32_t>(words.below(2)); });
        break;
      default: fill(values.values<std::uint8_t>(), [&] { return static_cast<std::uint8_t>(words.below(2)); });
    }
    inputs.emplace_back(input.name, std::move(values));
  }
  return inputs;
}

/// The network to be written, and a batch for it.
struct ExportedNetwork {
  const models::Model& model;
  Shape sample;
  std::shared_ptr<nn::Module> network;
  std::map<std::string, Tensor> weights;
  Dataset data;  // not of a file of which no training is written
  /// What the file calls its inputs; a file that was read keeps its names.
  std::vector<std::pair<std::string, Tensor>> inputs;

  explicit ExportedNetwork(const ExportArguments& options) : model(find_model(options.training.model)) {
    // Where options do not say otherwise, the network is that of the weights.
    const Trained trained = options.weights.empty() ? Trained{} : Trained::of(options.weights);
    sample = options.input.empty() ? trained_sample(model, trained) : sample_shape(options.input, model);
    const int classes = options.classes > 0 || is_file() ? options.classes : trained.classes;
    // ONNX cannot draw what dropout draws; in evaluation it does nothing.
    network = make_network(model, {.classes = classes, .dropout = !options.is_training, .input = sample});
    if (trained.table && !is_file()) network = with_units(network, *trained.table);
    if (options.weights.empty() && !is_file()) log(LogLevel::warning, kRandomWeights);
    const std::uint64_t seed = options.training.seed;
    if (is_file() && !options.is_training) {
      inputs = random_inputs(model, sample, options.samples(), seed);
    } else {
      data = random_data(model, {.network = {}, .classes = classes, .alphabet = {}}, sample, options.samples(), seed);
      for (const Column& column : data.feature_columns()) inputs.emplace_back(name_of(column), column.values);
    }
    if (options.weights.empty()) return;
    Graph graph;
    graph.set_training(false);
    static_cast<void>((*network)(added_to(graph)));
    weights = weights::load(options.weights, weights::wanted_of(graph), options.permit.get()).tensors;
  }
  [[nodiscard]] bool is_file() const { return file_of(model) != nullptr; }
  [[nodiscard]] std::string name_of(const Column& column) const { return is_file() ? column.name : "input"; }
  /// The inputs in a graph. A network of the zoo takes its one by position.
  [[nodiscard]] Values added_to(Graph& graph) const {
    Values values;
    for (const auto& [name, tensor] : inputs) {
      values.add(is_file() ? name : std::string(), graph.input(name, tensor.spec()));
    }
    return values;
  }
  [[nodiscard]] NamedTensors fed() const { return {inputs.begin(), inputs.end()}; }
  /// Compiled with the weights that the file has.
  [[nodiscard]] Program compiled(const Graph& graph, const std::vector<Value>& outputs, const DevicePtr& device,
                                 std::uint64_t seed) const {
    const auto variables = std::make_shared<Variables>(device, seed);
    Program program = compile(graph, outputs, variables);
    for (const auto& [name, value] : weights) variables->write(name, value);
    return program;
  }
  /// What --training minimises: for a file with one input and one output the loss that `concord train` takes.
  [[nodiscard]] Loss loss() const {
    if (!is_file()) return models::loss_of(model.task);
    CONCORD_CHECK(inputs.size() == 1 && data.more_labels.empty() && file_of(model)->outputs().size() == 1,
                  ArgumentError,
                  "--training writes the step of a network with one input and one output; {} has {} and {}", model.name,
                  inputs.size(), file_of(model)->outputs().size());
    return [objective = objective_of(model)](Value prediction, Value target) {
      const std::string name = objective.losses().empty() ? std::string() : objective.losses().front().output;
      Values outputs, targets;
      outputs.add(name, prediction);
      targets.add(name, target);
      return objective(outputs, targets);
    };
  }
};

ExportCase inference_case(const ExportArguments& options, const ExportedNetwork& exported, const DevicePtr& device) {
  Graph graph;
  graph.set_training(false);
  const Values outputs = (*exported.network)(exported.added_to(graph));
  std::vector<Value> values;
  for (const NamedValue& output : outputs) values.push_back(output.value);
  Program program = exported.compiled(graph, values, device, options.training.seed);
  for (const auto& [name, tensor] : exported.inputs) {
    if (program.has_input(name)) program.write(name, tensor);
  }
  program.run();
  ExportCase one{options.out, exported.fed(), {{}}};
  for (const NamedValue& output : outputs) {
    one.expected[0][output.name.empty() ? "output" : output.name] = program.read(output.value);
  }
  return one;
}

ExportCase training_case(const ExportArguments& options, const ExportedNetwork& exported, const DevicePtr& device,
                         const std::vector<optim::Group>& groups) {
  Graph graph;
  const Value input = graph.input("input", exported.data.features.spec());
  const Value loss = exported.loss()((*exported.network)(input), graph.input("target", exported.data.labels.spec()));
  optim::minimize(loss, options.training.make_optimizer(), {.groups = groups});
  Program program = exported.compiled(graph, {loss}, device, options.training.seed);
  program.write("input", exported.data.features);
  program.write("target", exported.data.labels);
  ExportCase one{options.out, {{"input", exported.data.features}, {"target", exported.data.labels}}, {}};
  for (std::size_t step = 0; step < kCheckedSteps; ++step) {
    program.run();
    one.expected.push_back({{"loss", program.read(loss)}});
    for (const Assignment& assignment : graph.assignments()) {
      const std::string name = assignment.variable.name();
      one.feedback[name + ".updated"] = name;
      if (step == 0) one.expected[0][name + ".updated"] = program.read(name);
    }
  }
  return one;
}

void write_training(const ExportArguments& options, const ExportedNetwork& exported,
                    const std::vector<optim::Group>& groups) {
  onnx::save_training(options.out, *exported.network, exported.loss(), options.training.make_optimizer(),
                      {.input = exported.data.features.shape(),
                       .dtype = exported.data.features.dtype(),
                       .target = exported.data.labels.spec(),
                       .opset = options.opset,
                       .weights = exported.weights,
                       .seed = options.training.seed,
                       .minimize = {.groups = groups}});
}

void write_inference(const ExportArguments& options, const ExportedNetwork& exported) {
  onnx::ExportOptions how{.opset = options.opset,
                          .batch = options.has_free_batch() ? options.batch : std::string(),
                          .weights = exported.weights,
                          .seed = options.training.seed};
  if (exported.is_file()) {
    for (const auto& [name, tensor] : exported.inputs) how.inputs.push_back({name, tensor.spec()});
  } else {
    how.input = exported.data.features.shape();
    how.dtype = exported.data.features.dtype();
  }
  onnx::save(options.out, *exported.network, how);
}

/// Prints the differences. Returns false if one is too large.
bool report(const ExportArguments& options, std::vector<OutputDifference> differences) {
  const auto limit = [&](const OutputDifference& one) {
    if (options.is_training && one.output == "loss") return kLargestLossDifference;
    // Small gradients of deep networks differ with the rounding of another program; its losses of later steps follow
    // from all of them.
    const bool is_shown_only = options.is_training && options.verify == kByOnnxruntime;
    return is_shown_only ? std::numeric_limits<double>::infinity() : kLargestDifference;
  };
  const bool is_right = std::ranges::all_of(differences, [&](const auto& one) { return one.relative() <= limit(one); });
  if (options.json) {
    nlohmann::json json{{"file", options.out}, {"verified_by", options.verify}, {"outputs", nlohmann::json::array()}};
    for (const OutputDifference& one : differences) {
      json["outputs"].push_back({{"name", one.output},
                                 {"difference", one.difference},
                                 {"largest", one.largest},
                                 {"is_right", one.relative() <= limit(one)}});
    }
    std::cout << json_text(json);
    return is_right;
  }
  // Of the many outputs of a training: the loss, and what differs most.
  const auto later = std::ranges::stable_partition(differences, [](const auto& one) { return one.output == "loss"; });
  std::ranges::sort(later, std::ranges::greater{}, &OutputDifference::relative);
  constexpr std::size_t kShown = 5;
  std::vector<std::vector<std::string>> rows{{"output", "difference", "largest value", "relative", ""}};
  for (const OutputDifference& one : differences) {
    if (rows.size() > kShown && one.relative() <= limit(one)) break;
    rows.push_back({one.output, fmt::format("{:.3g}", one.difference), fmt::format("{:.3g}", one.largest),
                    fmt::format("{:.3g}", one.relative()), one.relative() <= limit(one) ? "" : "too large"});
  }
  std::cout << fmt::format("checked with {}: {}\n", options.verify, counted(differences.size(), "output"))
            << table(rows);
  return is_right;
}

/// Options of a step that is not written would change nothing.
void check_export_options(const ExportArguments& options, const CLI::App& command) {
  options.permit.require_weights(options.weights);
  for (const char* const name : {"--optimizer", "--lr", "--momentum", "--weight-decay"}) {
    CONCORD_CHECK(options.is_training || command.get_option(name)->count() == 0, ArgumentError,
                  "{} is for --training, which writes a step of training", name);
  }
}

void run_export(const ExportArguments& options) {
  CONCORD_CHECK(options.out.ends_with(".onnx"), ArgumentError,
                "{}: the output is an ONNX file; its name must end with .onnx", printable(options.out));
  require_writable(options.out);
  InputFiles().add(options.training.model).add(options.weights).require_kept({{"--out", options.out}});
  CONCORD_CHECK(!options.is_training || !options.has_free_batch(), ArgumentError,
                "--training needs a number of samples for --batch: the step divides by it");
  const ExportedNetwork exported(options);
  std::vector<optim::Group> groups;
  if (options.is_training) {
    groups = options.training.make_groups(*exported.network, train::streamed_source(exported.data));
    write_training(options, exported, groups);
  } else {
    write_inference(options, exported);
  }
  if (!options.json) std::cout << fmt::format("{}: {}\n", options.out, options.training.model);
  if (options.verify.empty()) return;
  const DevicePtr device = options.device.open();
  const ExportCase one = options.is_training ? training_case(options, exported, device, groups)
                                             : inference_case(options, exported, device);
  const bool is_right = report(
      options, options.verify == kByOnnxruntime ? differences_by_onnxruntime(one) : differences_by_import(one, device));
  CONCORD_CHECK(is_right, Error, "{} does not compute what the network does; the file is kept", options.out);
}

}  // namespace

void add_export(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "Write a network, or a step of its training, as an ONNX file");
  const auto options = std::make_shared<ExportArguments>();
  options->training.add_model(*command);
  command->add_option("--out", options->out, "The file to write (.onnx)")->required()->check(file_name());
  command->add_option("--weights", options->weights, "Weights, of any format that evaluate reads [initial values]")
      ->check(file_name());
  options->permit.add(*command);
  command->add_option("--input", options->input, "One sample, such as 3x64x64 [that of the weights, or as published]")
      ->check(not_empty());
  command->add_option("--classes", options->classes, "Number of classes [those of the weights, or as published]")
      ->check(count());
  command
      ->add_option("--batch", options->batch,
                   "Samples of a batch, or a name, such as N, for a batch that whoever runs the file chooses")
      ->capture_default_str()
      ->check(not_empty());
  command->add_option("--opset", options->opset, "The version of ONNX's operators")
      ->capture_default_str()
      ->check(whole(onnx::kLeastOpset, onnx::kMostOpset));
  command->add_flag("--training", options->is_training,
                    "Write one step of training, without dropout: weights and optimizer state in, updated ones out");
  options->training.add_optimizer(*command, "The optimizer of --training");
  command->add_option("--lr", options->training.lr, "Learning rate of --training [0.01 for sgd, else the optimizer's]")
      ->check(positive());
  command->add_option("--momentum", options->training.momentum, "Momentum of --training [0.9 for sgd]")
      ->check(from_0_to_1());
  command->add_option("--weight-decay", options->training.weight_decay, "Weight decay of --training [the optimizer's]")
      ->check(not_negative());
  command->add_option("--seed", options->training.seed, "Seed of initial values and of the samples for --verify")
      ->capture_default_str();
  command
      ->add_option(
          "--verify", options->verify,
          "Run the file beside the network on random samples, and print the largest difference of each output: "
          "with concord, or with onnxruntime (needs python3 with onnx and onnxruntime)")
      ->type_name("[concord|onnxruntime]")
      ->expected(0, 1);
  options->device.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, command] {
    if (command->count("--verify") > 0 && options->verify.empty()) options->verify = kByImport;
    CONCORD_CHECK(options->verify.empty() || options->verify == kByImport || options->verify == kByOnnxruntime,
                  ArgumentError, "--verify: '{}' is neither {} nor {}", options->verify, kByImport, kByOnnxruntime);
    check_export_options(*options, *command);
    run_export(*options);
  });
}

}  // namespace concord::cli
