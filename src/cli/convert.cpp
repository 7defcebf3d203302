// concord convert: weights of other programs as safetensors.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "concord/cli/counted.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/random_data.hpp"
#include "concord/core/check.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/utf8.hpp"
#include "concord/weights/file.hpp"
#include "concord/weights/load.hpp"

namespace concord::cli {
namespace {

struct ConvertArguments {
  std::string from, to, network, input;
  int classes = 0;
  PermitOption permit;
  bool json = false;
};

/// The output would replace the input: by name, by link, or as the same file.
void require_another(const ConvertArguments& options) {
  std::error_code unknown;
  CONCORD_CHECK(!std::filesystem::equivalent(options.from, options.to, unknown), ArgumentError,
                "{} and {} are the same file; give the output another name", options.from, options.to);
}

/// The tensors of --for NETWORK.
std::map<std::string, TensorSpec> wanted_tensors(const ConvertArguments& options) {
  const models::Model& model = models::find(options.network);
  const Trained trained = Trained::of(options.from);
  const Shape sample = options.input.empty() ? trained_sample(model, trained) : sample_shape(options.input, model);
  Graph graph;
  graph.set_training(false);
  const int classes = options.classes > 0 ? options.classes : trained.classes;
  const auto network = models::make(options.network, {.classes = classes, .input = sample});
  static_cast<void>((*network)(graph.input("features", models::batch_of(model, sample, 1))));
  return weights::wanted_of(graph);
}

/// What is written, and what was done for it.
weights::Loaded converted_tensors(const ConvertArguments& options) {
  if (!options.network.empty()) return weights::load(options.from, wanted_tensors(options), options.permit.get());
  weights::Contents contents = weights::read(options.from);
  weights::Report report{.format = contents.format, .map = {}, .notes = contents.notes, .cast = contents.cast};
  return {std::move(contents.tensors), std::move(report)};
}

nlohmann::json report_json(const weights::Report& report) {
  return {{"format", report.format},
          {"map", report.map},
          {"notes", report.notes},
          {"renamed", report.renamed},
          {"cast", report.cast},
          {"ignored", report.ignored},
          {"missing", report.differences.missing},
          {"extra", report.differences.unexpected},
          {"misshaped", report.differences.misshaped}};
}

void run_convert(const ConvertArguments& options) {
  const std::filesystem::path ending = std::filesystem::path(options.to).extension();
  CONCORD_CHECK(ending.empty() || ending == ".safetensors", ArgumentError,
                "{}: the output is a safetensors file; its name must end with .safetensors", printable(options.to));
  require_another(options);
  require_writable(options.to);
  const weights::Loaded loaded = converted_tensors(options);
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : loaded.tensors) bytes += tensor.bytes().size();
  io::write_safetensors(options.to, loaded.tensors, {{"format", "pt"}});
  if (options.json) {
    nlohmann::json json = report_json(loaded.report);
    json.update({{"from", options.from}, {"to", options.to}, {"tensors", loaded.tensors.size()}, {"bytes", bytes}});
    std::cout << json_text(json);
  } else {
    std::cout << loaded.report.str();
    std::cout << fmt::format("{}: {}, {}\n", options.to, counted(loaded.tensors.size(), "tensor"), human_bytes(bytes));
  }
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand("convert", "Write the weights of another program as safetensors");
  const auto options = std::make_shared<ConvertArguments>();
  command->add_option("from", options->from, "safetensors, PyTorch (.pt, .pth, .bin), Keras (.h5, .keras) or Caffe")
      ->required()
      ->check(file_name());
  command->add_option("to", options->to, "The file to write (safetensors)")->required()->check(file_name());
  command
      ->add_option("--for", options->network,
                   "Write the tensors of this network: prefixes stripped, renamed, transposed, split and joined")
      ->check(not_empty());
  command
      ->add_option("--input", options->input,
                   "One sample of the network, such as 3x64x64 [that of the weights, or as published]")
      ->check(not_empty());
  command->add_option("--classes", options->classes, "Of the network [those of the weights, or as published]")
      ->check(count());
  options->permit.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const bool is_for_one = !options->network.empty();
    CONCORD_CHECK(is_for_one || (options->input.empty() && options->classes == 0 && options->permit.patterns.empty()),
                  ArgumentError, "--input, --classes and --permit need --for NETWORK");
    run_convert(*options);
  });
}

}  // namespace concord::cli
