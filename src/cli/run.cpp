// concord run: the outputs of a network, or of an ONNX file, for given inputs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/counted.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/label_outputs.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/tensor_files.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/core/check.hpp"
#include "concord/core/median.hpp"

namespace concord::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RunArguments {
  TrainingOptions training;  // MODEL
  DeviceOption device;
  PrecisionOption precision;
  TraceOption trace;
  std::vector<std::string> inputs, outputs, known;
  std::string weights;
  PermitOption permit;
  std::int64_t repeat = 0;
  bool json = false;
};

/// A network that is to be run, with what is known of its inputs and outputs.
struct Runnable {
  std::shared_ptr<nn::Module> network;
  NamedTensors inputs;
  bool is_file = false;
  std::map<std::string, io::NpyType> types = {};  // of outputs that ONNX declares as int64 or bool
};

Runnable open_file(const RunArguments& options) {
  const std::string& path = options.training.model;
  const auto network =
      std::make_shared<onnx::Network>(onnx::load(path, {.known = read_tensors(options.known, {}, {})}));
  std::vector<std::string> names;
  std::map<std::string, DType> types;
  for (const onnx::Declaration& input : network->inputs()) {
    names.push_back(input.name);
    types.emplace(input.name, onnx::dtype_of(input.type));
  }
  Runnable runnable{network, read_tensors(options.inputs, names, types), true};
  for (const onnx::Declaration& input : network->inputs()) {
    CONCORD_CHECK(runnable.inputs.contains(input.name), ArgumentError,
                  "{} needs the input {}, {}; give it with --input {}=FILE.npy", path, input.name, input.str(),
                  input.name);
  }
  for (const auto& [name, tensor] : runnable.inputs) {
    const auto type = types.find(name);
    CONCORD_CHECK(type != types.end(), ArgumentError, "{} has no input {}; it has {}", path, name,
                  fmt::join(names, ", "));
    CONCORD_CHECK(tensor.dtype() == type->second, ArgumentError, "the input {} of {} is {}, but the file has {}", name,
                  path, name_of(type->second), tensor.spec().str());
  }
  for (const onnx::Declaration& output : network->outputs()) {
    if (output.type == onnx::ElementType::i64) runnable.types.emplace(output.name, io::NpyType::int64);
    if (output.type == onnx::ElementType::boolean) runnable.types.emplace(output.name, io::NpyType::boolean);
  }
  return runnable;
}

Runnable open_network(const RunArguments& options) {
  CONCORD_CHECK(options.known.empty(), ArgumentError, "--known is for ONNX files");
  const models::Model& model = find_model(options.training.model);
  NamedTensors inputs = read_tensors(options.inputs, {"input"}, {{"input", model.dtype}});
  CONCORD_CHECK(inputs.size() == 1, ArgumentError, "{} needs one input, such as --input FILE.npy; got {}", model.name,
                inputs.size());
  const Tensor& input = inputs.begin()->second;
  CONCORD_CHECK(input.dtype() == model.dtype && input.shape().rank() >= 1, ArgumentError,
                "{} takes {}, a batch of samples; the file has {}", model.name, models::batch_of(model, 1).str(),
                input.spec().str());
  const auto dims = input.shape().dims();
  const Trained trained = options.weights.empty() ? Trained{} : Trained::of(options.weights);
  const std::shared_ptr<nn::Module> network =
      models::make(model.name, {.classes = trained.classes, .input = Shape({dims.begin() + 1, dims.end()})});
  return {trained.table ? with_units(network, *trained.table) : network, std::move(inputs)};
}

InputFiles inputs_of(const RunArguments& options) {
  InputFiles inputs;
  inputs.add(options.training.model).add(options.weights);
  for (const std::string& text : options.inputs) inputs.add(name_and_value(text).second);
  for (const std::string& text : options.known) inputs.add(name_and_value(text).second);
  return inputs;
}

/// Called with inputs of one network: by name for a file, else the only one by position.
NamedTensors run_once(Session& session, const Runnable& runnable) {
  if (runnable.is_file) return session.run(runnable.inputs);
  return {{"output", session.run(runnable.inputs.begin()->second)}};
}

/// Milliseconds of each run, inputs and outputs included.
std::vector<double> timed_runs(Session& session, const Runnable& runnable, std::int64_t runs) {
  std::vector<double> times;
  for (std::int64_t i = 0; i < runs; ++i) {
    const Clock::time_point start = Clock::now();
    static_cast<void>(run_once(session, runnable));
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return times;
}

nlohmann::json json_of(const NamedTensors& outputs, const std::vector<double>& times, const DeviceInfo& device) {
  nlohmann::json json{{"device", device.id}, {"outputs", nlohmann::json::object()}};
  for (const auto& [name, tensor] : outputs) {
    const auto dims = tensor.shape().dims();
    json["outputs"][name] = {{"dtype", name_of(tensor.dtype())},
                             {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                             {"values", numbers_of(tensor)}};
  }
  if (!times.empty()) json["milliseconds"] = {{"median", median(times)}, {"least", std::ranges::min(times)}};
  return json;
}

std::string text_of(const NamedTensors& outputs) {
  constexpr std::size_t kShown = 16;
  std::string text;
  for (const auto& [name, tensor] : outputs) {
    const std::vector<double> numbers = numbers_of(tensor);
    text += fmt::format("{}: {}", name, tensor.spec().str());
    if (!numbers.empty() && numbers.size() <= kShown) {
      text += fmt::format(", {:.6g}", fmt::join(numbers, " "));
    } else if (!numbers.empty()) {
      double sum = 0;
      for (const double number : numbers) sum += number;
      const auto [least, greatest] = std::ranges::minmax(numbers);
      text += fmt::format(", from {:.6g} to {:.6g}, mean {:.6g}", least, greatest,
                          sum / static_cast<double>(numbers.size()));
    }
    text += '\n';
  }
  return text;
}

void run_network(const RunArguments& options) {
  options.permit.require_weights(options.weights);
  const TensorTargets targets(options.outputs);
  const bool is_file = options.training.model.ends_with(".onnx");
  const Runnable runnable = is_file ? open_file(options) : open_network(options);
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  Session session(runnable.network, device, {.precision = options.precision.get(), .seed = 1});
  if (!options.weights.empty()) {
    session.load(options.weights, options.permit.get());
  } else if (!runnable.is_file) {
    log(LogLevel::warning, kRandomWeights);
  }
  const NamedTensors outputs = run_once(session, runnable);
  const std::vector<double> times = timed_runs(session, runnable, options.repeat);
  targets.write(outputs, runnable.types);
  if (options.json) {
    std::cout << json_text(json_of(outputs, times, device->info()));
    return;
  }
  if (targets.empty()) std::cout << text_of(outputs);
  if (!times.empty()) {
    std::cout << fmt::format("{} on {}: median {:.3f} ms, least {:.3f} ms\n", counted(times.size(), "run"),
                             device->info().name, median(times), std::ranges::min(times));
  }
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "run", "Compute the outputs of a network or of an ONNX file; with -- PROGRAM, the same as launch");
  const auto options = std::make_shared<RunArguments>();
  options->training.add_model(*command);
  command
      ->add_option(
          "--input", options->inputs,
          "An input: NAME=FILE.npy, FILE.safetensors with all inputs, or NAME=random:1x3x224x224; a network of "
          "one input needs no NAME")
      ->required()
      ->check(not_empty());
  command
      ->add_option("--output", options->outputs,
                   "Write an output: NAME=FILE.npy, or FILE.safetensors for all [print them]")
      ->check(not_empty());
  command
      ->add_option("--known", options->known,
                   "An input of an ONNX file that is fixed while the network is built: NAME=FILE.npy")
      ->check(not_empty());
  command->add_option("--weights", options->weights, "Weights of the network")->check(file_name());
  options->permit.add(*command);
  options->device.add(*command);
  options->precision.add(*command);
  command->add_option("--repeat", options->repeat, "Run so many times more, and print the time of a run")
      ->capture_default_str()
      ->check(count());
  options->trace.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const InputFiles inputs = inputs_of(*options);
    for (const std::string& text : options->outputs) inputs.require_kept({{"--output", name_and_value(text).second}});
    options->trace.around(inputs, [&] { run_network(*options); });
  });
}

}  // namespace concord::cli
