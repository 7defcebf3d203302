// concord compare: the same training on several devices. Exit code 1 if an operator diverges.
#include "concord/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <set>
#include <string_view>

#include "concord/cli/case_network.hpp"
#include "concord/cli/compare_program.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/random_data.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

struct CompareArguments {
  TrainingOptions training;
  std::vector<std::string> devices;  // each with commas
  PrecisionOption precision;
  TraceOption trace;
  DataOptions data{.text = "random"};
  std::string weights;
  PermitOption permit;
  std::string input;
  std::int64_t steps = 100;
  double seconds = 1;
  CLI::Option* json = nullptr;  // with a file or alone
  CompareOutputs outputs = {};
  std::string case_node, reference = "device";
  std::string check = "ends";
  bool drift = false;
  std::vector<std::string> arguments = {};  // of a program

  [[nodiscard]] std::vector<std::string> selectors() const;
  [[nodiscard]] bool prints_json() const { return json->count() > 0 && outputs.json_file.empty(); }
  /// The options that do not depend on the network.
  [[nodiscard]] CompareOptions how() const;
};

std::vector<std::string> CompareArguments::selectors() const {
  std::vector<std::string> all;
  for (const std::string& list : devices) {
    for (std::string& one : split(list, ',')) all.push_back(std::move(one));
  }
  return all;
}

constexpr std::int64_t kMostBatches = 16;  // of random data; they come again in another order
constexpr std::string_view kAll = "all";

/// CompareOptions::check_every. Throws ArgumentError.
std::int64_t steps_between(const std::string& check) {
  if (check == "ends") return 0;
  if (check == "every") return 1;
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(check.data(), check.data() + check.size(), steps);
  if (error != std::errc() || end != check.data() + check.size() || steps < 1) {
    throw ArgumentError(fmt::format("--check is \"{}\"; use every, ends or a number of steps", check));
  }
  return steps;
}

CompareOptions CompareArguments::how() const {
  return {.steps = steps,
          .seconds = seconds,
          .reference = reference == "float64" ? Reference::float64 : Reference::device,
          .check_every = steps_between(check),
          .drift = drift || !outputs.html_file.empty(),
          .speed = outputs.has_files(),
          .case_node = case_node,
          .weights = weights,
          .load = permit.get()};
}

void check_places(const CompareArguments& options) {
  const CompareOutputs& out = options.outputs;
  for (const std::string& file : {out.html_file, out.json_file, out.case_file}) require_writable(file);
  require_different({{"--html", out.html_file},
                     {"--json", out.json_file},
                     {"--save-case", out.case_file},
                     {"--trace", options.trace.file}});
}

/// Calls `work` with batches of this size. Which size fits is unknown, because a comparison keeps every value of a
/// step.
template <class Work>
auto with_advice(std::int64_t batch, const Work& work) {
  try {
    return work();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format("{}. Use a --batch smaller than {}", error.what(), batch));
  } catch (const NotSupported& error) {
    throw NotSupported(
        fmt::format("{}. If the batch is too large, use a --batch smaller than {}", error.what(), batch));
  }
}

struct Compared {
  Comparison comparison;
  std::map<std::string, std::string> network;  // of a case
};

/// The weights in the options say what the network was trained on.
Trained trained_of(const CompareArguments& options) {
  return options.weights.empty() ? Trained{} : Trained::of(options.weights);
}

Compared compare_one(const CompareArguments& options, const models::Model& model, const Shape& sample,
                     const std::vector<DevicePtr>& devices) {
  const TrainingOptions& training = options.training;
  const bool is_random = options.data.text == "random";
  const Trained trained = trained_of(options);
  DataSource source(options.data, model, training.seed, trained);
  const SharedSamples samples =
      is_random ? SharedSamples(random_data(model, trained, sample,
                                            std::min(options.steps, kMostBatches) * training.batch, training.seed))
                : source.part("train");
  const Samples& dataset = *samples;
  const models::Variant variant = source.variant_for(dataset);
  CONCORD_CHECK(options.outputs.case_file.empty() || source.is_told_by_name(dataset), ArgumentError,
                "--save-case: a case has a network and a loss for one class of each sample; {} has several "
                "labels, masks or numbers to predict, with which it could not be replayed",
                dataset.name);
  const std::shared_ptr<nn::Module> network = source.make(variant);
  CompareOptions how = options.how();
  how.batch = training.batch;
  how.seed = training.seed;
  how.groups = training.make_groups(*network, train::streamed_source(dataset));
  how.precision = options.precision.get();
  return {with_advice(training.batch,
                      [&] {
                        return compare(*network, std::string(model.name), source.objective_for(dataset, variant),
                                       training.make_optimizer(), dataset, devices, how);
                      }),
          case_network(training, dataset, variant.classes, options.precision.name)};
}

void print_row(const Comparison& comparison) {
  std::string diverging = comparison.agrees() ? "none" : comparison.disagreement();
  const auto found =
      std::ranges::find_if(comparison.runs, [](const DeviceRun& run) { return run.first_deviation.has_value(); });
  if (found != comparison.runs.end()) {
    const Deviation& d = *found->first_deviation;
    diverging = fmt::format("{} on {}: error {:.3g}, tolerance {:.3g} ({}, kernel {}, {})", d.node, found->device.id,
                            d.error, d.tolerance, d.op, d.kernel, d.shapes);
  }
  const double part = std::ranges::max(comparison.runs, {}, &DeviceRun::largest_loss_deviation).largest_loss_deviation;
  std::cout << fmt::format("{:<22} {:>8} {:>13.2e}  {}\n", comparison.network, comparison.checked_values(), part,
                           diverging)
            << std::flush;
}

// Compares every network of the zoo at a small size. If one fails, the others are still compared.
void run_all(const CompareArguments& options, const std::vector<DevicePtr>& devices) {
  if (options.data.text != "random" || !options.input.empty())
    throw ArgumentError("'all' cannot be used with --data or --input");
  if (!options.weights.empty()) throw ArgumentError("--weights are those of one network, not of 'all'");
  if (options.outputs.has_files() || !options.outputs.case_file.empty()) {
    throw ArgumentError("'all' only prints its results: --html, --save-case and a file for --json need one network");
  }
  std::string failed, json;
  if (!options.prints_json())
    std::cout << fmt::format("{:<22} {:>8} {:>13}  {}\n", "network", "checked", "max loss dev", "diverging operator");
  for (const models::Model& model : models::all()) {
    try {
      const Comparison comparison = compare_one(options, model, model.least, devices).comparison;
      if (!comparison.agrees()) failed += fmt::format(" {}", model.name);
      if (options.prints_json()) json += (json.empty() ? "" : ",\n") + comparison.json();
      if (!options.prints_json()) print_row(comparison);
    } catch (const Error& error) {
      failed += fmt::format(" {}", model.name);
      say(fmt::format("{}: {}", model.name, error.what()));
    }
  }
  if (options.prints_json()) std::cout << "[\n" << json << "]\n";
  if (!failed.empty()) throw Error("the devices do not agree, or could not be compared, on:" + failed);
}

/// Refuses options that apply only to networks of the zoo. A program sets these itself.
void refuse_options_of_networks(const CLI::App& command) {
  static const std::set<std::string> kOfAll{"model",  "--devices", "--steps", "--seconds",   "--drift", "--reference",
                                            "--html", "--json",    "--check", "--save-case", "--case",  "--trace"};
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || kOfAll.contains(option->get_name())) continue;
    throw ArgumentError(
        fmt::format("{} applies only to the networks of `concord models`, not to a program", option->get_name()));
  }
}

void run_program(const CompareArguments& options, const CompareOutputs& outputs) {
  require_writable(options.trace.file);
  check_places(options);
  compare_program(options.training.model, options.arguments,
                  {.name = {},
                   .devices = options.selectors(),
                   .options = options.how(),
                   .outputs = outputs,
                   .trace_file = options.trace.file});
}

void run_networks(const CompareArguments& options, const CompareOutputs& outputs) {
  if (!options.arguments.empty()) {
    throw ArgumentError(fmt::format("-- {}: arguments need a program, given by its path", options.arguments[0]));
  }
  options.permit.require_weights(options.weights);
  keep_freed_memory();  // every value of a network passes through the host, again and again
  const bool all = options.training.model == kAll;
  const models::Model* model = all ? nullptr : &find_model(options.training.model);
  if (!options.input.empty() && options.data.text != "random") throw ArgumentError("--input needs random data");
  std::vector<DevicePtr> devices;
  for (const std::string& selector : options.selectors()) devices.push_back(Device::open(selector));
  for (const DevicePtr& device : devices) options.precision.warn_of(device->info());
  if (all) return run_all(options, devices);
  check_places(options);
  const Shape sample =
      options.input.empty() ? trained_sample(*model, trained_of(options)) : sample_shape(options.input, *model);
  const auto [comparison, network] = compare_one(options, *model, sample, devices);
  std::cout << outputs.text(comparison);
  outputs.write_files(comparison, network);
  if (const std::string error = CompareOutputs::error(comparison); !error.empty()) throw Error(error);
}

void run(const CompareArguments& options, const CLI::App& command) {
  CompareOutputs outputs = options.outputs;
  outputs.prints_json = options.prints_json();
  const InputFiles inputs = InputFiles().add(options.training.model).add_data(options.data.text).add(options.weights);
  inputs.require_kept({{"--html", outputs.html_file},
                       {"--json", outputs.json_file},
                       {"--save-case", outputs.case_file},
                       {"--trace", options.trace.file}});
  if (!is_program(options.training.model)) {
    return options.trace.around(inputs, [&] { run_networks(options, outputs); });
  }
  refuse_options_of_networks(command);
  run_program(options, outputs);
}

}  // namespace

void add_compare(CLI::App& app, std::vector<std::string> program_arguments) {
  CLI::App* command = app.add_subcommand("compare", "Train on several devices at once and compare values and speed");
  command->footer("Arguments after -- are passed to the program.");
  const auto options = std::make_shared<CompareArguments>();
  options->arguments = std::move(program_arguments);
  options->training.add_model(*command,
                              "; all: every network, at a small size; or the path of a program that trains a network");
  command->add_option("--devices", options->devices, "Comma-separated; the first is the reference")
      ->required()
      ->check(device_selectors());
  add_threads(*command);
  command->add_option("--steps", options->steps, "Training steps")->capture_default_str()->check(count());
  options->data.add(*command, command->add_option("--data", options->data.text, kDataHelp)->capture_default_str());
  command->add_option("--input", options->input, "One random sample, such as 3x64x64 [as published]")
      ->check(not_empty());
  command->add_option("--seconds", options->seconds, "Measure the step of each device for at least this many seconds")
      ->capture_default_str()
      ->check(positive());
  command
      ->add_option("--weights", options->weights,
                   "Start with the weights of this file, of any format that evaluate reads [random weights]")
      ->check(file_name());
  options->permit.add(*command);
  options->precision.add(*command);
  options->training.add_training(*command);
  options->trace.add(*command);
  command->add_flag(
      "--drift", options->drift,
      "Report the distance of the weights, compared with runs moved by one ULP; --html always contains it");
  command
      ->add_option("--reference", options->reference,
                   "Compare operators with the first device (device) or with double precision on the host (float64)")
      ->capture_default_str()
      ->check(one_of({"device", "float64"}));
  command->add_option("--html", options->outputs.html_file, "Write a page with all results and charts here")
      ->check(file_name());
  options->json =
      command->add_option("--json", options->outputs.json_file, "Print JSON; with a file, write all results there")
          ->expected(0, 1);
  command
      ->add_option("--check", options->check,
                   "Also check steps between the first and the last: ends (none), every, or N (each N-th)")
      ->capture_default_str();
  CLI::Option* const file = command
                                ->add_option("--save-case", options->outputs.case_file,
                                             "Write the first diverging operator to this file, for `concord replay`; "
                                             "if none diverges, a warning says that nothing is written")
                                ->check(file_name());
  command->add_option("--case", options->case_node, "With --save-case: save this node, even if it does not diverge")
      ->check(not_empty())
      ->needs(file);
  command->callback([options, command] { run(*options, *command); });
}

}  // namespace concord::cli
