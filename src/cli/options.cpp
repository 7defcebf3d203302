// Shared options.
#include "concord/cli/options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "concord/cli/dataset.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/threads.hpp"

namespace concord::cli {

void require_folder_of(const std::string& file) {
  if (file.empty()) return;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(file, error).parent_path();
  const std::filesystem::file_type type = std::filesystem::status(folder, error).type();
  CONCORD_CHECK(type != std::filesystem::file_type::none, IoError, "{} cannot be written: {}: {}", file,
                folder.string(), error.message());
  CONCORD_CHECK(type == std::filesystem::file_type::directory, IoError, "{} cannot be written: there is no folder {}",
                file, folder.string());
}

void require_writable(const std::string& file) {
  CONCORD_CHECK(file != "-", ArgumentError, "'-' is not a file here; use ./- for a file with this name");
  if (file.empty()) return;
  require_folder_of(file);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  CONCORD_CHECK(status.type() != std::filesystem::file_type::none, IoError, "{} cannot be written: {}", file,
                error.message());
  CONCORD_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status), IoError,
                "{} cannot be written: it is not a regular file", file);
  const AtomicFile probe(file);
}

void require_different(std::initializer_list<std::pair<std::string_view, std::string>> files) {
  std::map<std::filesystem::path, std::string_view> options;
  for (const auto& [option, file] : files) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(file, error);
    if (file.empty() || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))) continue;
    const auto [first, is_new] =
        options.emplace(std::filesystem::weakly_canonical(std::filesystem::absolute(file), error), option);
    CONCORD_CHECK(is_new, ArgumentError, "{} and {} would both write {}", first->second, option, file);
  }
}

void TrainingOptions::add_model(CLI::App& command, std::string_view others) {
  constexpr std::string_view kHelp =
      "The network: resnet50, or another of `concord models`; some take sizes: mlp:depth=4,width=512; or an ONNX file: "
      "net.onnx";
  command.add_option("model", model, fmt::format("{}{}", kHelp, others))->required();
}

namespace {

/// An optimizer of the command line: its defaults, with the numbers that were given.
struct NamedOptimizer {
  std::string name;
  double lr;  // default
  bool has_momentum, has_betas, has_eps;
  optim::Optimizer (*make)(const TrainingOptions& options, double lr);
};

template <class Parameters>
concept HasMomentum = requires(Parameters parameters) {
  parameters.momentum;
};

template <class Parameters>
concept HasBetas = requires(Parameters parameters) {
  parameters.betas;
};

template <class Parameters>
concept HasEps = requires(Parameters parameters) {
  parameters.eps;
};

template <class Parameters>
optim::Optimizer with_options(const TrainingOptions& options, double lr) {
  Parameters parameters;
  parameters.lr = lr;
  if (options.weight_decay >= 0) parameters.weight_decay = options.weight_decay;
  if constexpr (HasMomentum<Parameters>) {
    if constexpr (std::is_same_v<Parameters, optim::Sgd>) parameters.momentum = 0.9;
    if (options.momentum >= 0) parameters.momentum = options.momentum;
  }
  if constexpr (HasBetas<Parameters>) {
    if (!options.betas.empty()) parameters.betas = {options.betas.at(0), options.betas.at(1)};
  }
  if constexpr (HasEps<Parameters>) {
    if (options.eps >= 0) parameters.eps = options.eps;
  }
  // One rate then works for both Muon and the AdamW that it is combined with.
  if constexpr (std::is_same_v<Parameters, optim::Muon>) parameters.rate = optim::Muon::Rate::match_rms_adamw;
  return parameters;
}

template <class Parameters>
NamedOptimizer entry(const Parameters& defaults) {
  const double lr = std::is_same_v<Parameters, optim::Sgd> ? 1e-2 : defaults.lr;
  return {defaults.rule().name,    lr, HasMomentum<Parameters>, HasBetas<Parameters>, HasEps<Parameters>,
          with_options<Parameters>};
}

const std::vector<NamedOptimizer>& optimizers() {
  static const std::vector<NamedOptimizer> all = std::apply(
      [](const auto&... defaults) { return std::vector<NamedOptimizer>{entry(defaults)...}; }, optim::Optimizers{});
  return all;
}

const NamedOptimizer& find_optimizer(const std::string& name) {
  const auto found = std::ranges::find(optimizers(), name, &NamedOptimizer::name);
  if (found == optimizers().end()) throw ArgumentError(fmt::format("there is no optimizer '{}'", name));
  return *found;
}

}  // namespace

void TrainingOptions::add_optimizer(CLI::App& command, const char* help) {
  std::vector<std::string> names;
  for (const NamedOptimizer& known : optimizers()) names.push_back(known.name);
  command.add_option("--optimizer", optimizer, help)->capture_default_str()->check(CLI::IsMember(names));
}

void TrainingOptions::add_training(CLI::App& command) {
  command.add_option("--batch", batch, "Samples per step")->capture_default_str()->check(count());
  add_optimizer(command,
                "The optimizer; with lars, sgd updates biases and norms; with muon, adamw updates biases, norms, "
                "embeddings and the last layer");
  command.add_option("--lr", lr, "Learning rate [0.01 for sgd, else the optimizer's default]")->check(positive());
  command.add_option("--momentum", momentum, "Momentum of sgd and lars [0.9], muon [0.95], rmsprop [0]")
      ->check(from_0_to_1());
  command.add_option("--weight-decay", weight_decay, "Weight decay [the optimizer's default]")->check(not_negative());
  command.add_option("--betas", betas, "Betas of adam and similar optimizers: 0.9,0.999 [the optimizer's defaults]")
      ->delimiter(',')
      ->expected(2)
      ->check(from_0_below_1());
  command.add_option("--eps", eps, "Added to divisors [the optimizer's default]")->check(not_negative());
  command.add_flag("--decay-matrices-only", decay_matrices_only, "No weight decay on biases and norms");
  command
      .add_option("--freeze", freeze,
                  "Parameters that keep their values, by name: 'features.*'; may be given several times")
      ->allow_extra_args(false);
  command.add_option("--seed", seed, "For initial weights, order of samples and dropout")
      ->capture_default_str()
      ->check(whole(0, std::numeric_limits<std::uint64_t>::max()));
}

optim::Optimizer TrainingOptions::make_optimizer() const {
  const NamedOptimizer& chosen = find_optimizer(optimizer);
  const auto refuse = [&](const char* option, bool is_given, bool is_there) {
    CONCORD_CHECK(!is_given || is_there, ArgumentError, "{}: {} has no such option", option, optimizer);
  };
  refuse("--momentum", momentum >= 0, chosen.has_momentum);
  refuse("--betas", !betas.empty(), chosen.has_betas);
  refuse("--eps", eps >= 0, chosen.has_eps);
  return chosen.make(*this, lr > 0 ? lr : chosen.lr);
}

namespace {

void check_frozen(const std::vector<std::string>& patterns, const Graph& graph) {
  std::vector<std::string_view> names;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) names.push_back(variable->name);
  }
  constexpr std::size_t kMost = 8;
  const std::size_t left_out = names.size() - std::min(names.size(), kMost);
  for (const std::string& pattern : patterns) {
    const optim::Match matches = optim::named(pattern);
    CONCORD_CHECK(std::ranges::any_of(graph.variables(), [&](const VariablePtr& v) { return matches(*v); }),
                  ArgumentError, "--freeze {} matches no parameter; there are {}{}", pattern,
                  fmt::join(std::span(names).first(names.size() - left_out), ", "),
                  left_out > 0 ? fmt::format(" and {} more", left_out) : "");
  }
  const auto is_frozen = [&](const VariablePtr& variable) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return optim::named(pattern)(*variable); });
  };
  CONCORD_CHECK(
      patterns.empty() || !std::ranges::all_of(
                              graph.variables(),
                              [&](const VariablePtr& variable) { return !variable->trainable || is_frozen(variable); }),
      ArgumentError, "--freeze {} freezes every parameter: no parameter is left to train", fmt::join(patterns, " "));
}

}  // namespace

std::vector<optim::Group> TrainingOptions::make_groups(nn::Module& network, const train::Source& source) const {
  std::vector<optim::Group> groups;
  for (const std::string& pattern : freeze) groups.push_back({.match = optim::named(pattern), .frozen = true});
  const bool muon = optimizer == "muon", lars = optimizer == "lars";
  if (freeze.empty() && !muon && !lars && !decay_matrices_only) return groups;
  Graph graph;
  static_cast<void>(network(train::add_inputs(graph, source, 2).features));
  check_frozen(freeze, graph);
  const auto add_unless_empty = [&](optim::Group group) {
    const auto is_left = [&](const VariablePtr& variable) {
      const auto matches = [&](const optim::Group& g) { return g.match(*variable); };
      return variable->trainable && matches(group) && std::ranges::none_of(groups, matches);
    };
    if (std::ranges::any_of(graph.variables(), is_left)) groups.push_back(std::move(group));
  };
  const double rate = lr > 0 ? lr : find_optimizer(optimizer).lr;
  optim::AdamW adamw{.lr = rate};
  if (weight_decay >= 0) adamw.weight_decay = weight_decay;
  optim::Group vectors{.match = optim::vectors()};
  if (decay_matrices_only) vectors.weight_decay = 0;
  if (muon) vectors.optimizer = adamw;
  if (lars) vectors.optimizer = optim::Sgd{.lr = rate, .momentum = momentum >= 0 ? momentum : 0.9};
  add_unless_empty(std::move(vectors));
  if (muon) add_unless_empty({.match = optim::all_but_hidden_matrices(graph), .optimizer = adamw});
  return groups;
}

void PermitOption::add(CLI::App& command) {
  command
      .add_option(
          "--permit", patterns,
          "Differences between the weights and the network: missing=PATTERN for tensors that the file lacks or "
          "has in another shape, which keep their first values; extra=PATTERN for tensors that the network lacks; "
          "several with commas: missing=fc.*,extra=head.*")
      ->delimiter(',')
      ->allow_extra_args(false);
}

io::LoadOptions PermitOption::get() const {
  io::LoadOptions options;
  for (const std::string_view text : patterns) {
    const std::size_t sign = text.find('=');
    const std::string_view kind = text.substr(0, sign);
    const bool is_right =
        sign != std::string_view::npos && sign + 1 < text.size() && (kind == "missing" || kind == "extra");
    CONCORD_CHECK(is_right, ArgumentError, "--permit {}: expected missing=PATTERN or extra=PATTERN", text);
    (kind == "missing" ? options.permit_missing : options.permit_extra).emplace_back(text.substr(sign + 1));
  }
  return options;
}

void SavedModelOptions::add(CLI::App& command) {
  command.add_option("--weights", weights, "Weights or checkpoint: safetensors, PyTorch, Keras or Caffe")
      ->required()
      ->check(file_name());
  permit.add(command);
  command.add_option("--data", data, kDataHelp)->required()->check(data_name());
  command.add_option("--split", split, "The split of the data")
      ->capture_default_str()
      ->check(CLI::IsMember({"train", "test"}));
}

Shape sample_shape(const std::string& text, const models::Model& model) {
  if (text.empty()) return published_sample(model);
  std::vector<std::int64_t> dims;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [rest, error] = std::from_chars(at, end, size);
    if (error != std::errc{} || size < 1 || (rest != end && *rest != 'x')) {
      throw ArgumentError(fmt::format("--input {}: expected sizes such as 3x224x224", text));
    }
    dims.push_back(size);
    if (rest == end) return Shape(dims);
    at = rest + 1;
  }
}

std::string sample_text(const Shape& sample) { return fmt::format("{}", fmt::join(sample.dims(), "x")); }

std::size_t parse_bytes(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}};
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = std::string_view(text).substr(static_cast<std::size_t>(rest - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const auto* const found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  const double bytes = found == kUnits.end() ? 0 : number * found->second;
  if (error != std::errc{} || !(bytes >= 1) || bytes >= 0x1p63) {
    throw ArgumentError(fmt::format("'{}' is not a number of bytes such as 1000000, 512KiB, 800MiB or 1.5GiB", text));
  }
  return static_cast<std::size_t>(bytes);
}

void MemoryBudgetOption::add(CLI::App& command) {
  const auto refusal = [](const std::string& given) {
    try {
      static_cast<void>(parse_bytes(given));
      return std::string();
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
  };
  command
      .add_option("--memory-budget", text,
                  "Most memory for values and workspaces of a training step, without weights and data: 800MiB, 1.5GiB. "
                  "Values that do not fit are computed again instead of kept")
      ->check(CLI::Validator(refusal, "BYTES"));
}

std::size_t MemoryBudgetOption::bytes() const { return text.empty() ? 0 : parse_bytes(text); }

void PrecisionOption::add(CLI::App& command) {
  command
      .add_option("--precision", name,
                  "Lets the device round factors of matrix multiplications, and with 16 bits also images between "
                  "operators, to this precision where it has matrix cores for it")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16"}));
}

void PrecisionOption::warn_of(const DeviceInfo& device) const {
  if (std::ranges::find(device.precisions, name) != device.precisions.end()) return;
  const bool is_opencl = device.backend == "opencl";
  log(LogLevel::warning,
      fmt::format("--precision {}: {} ({}) has no matrix cores for it; {}", name, device.name, device.id,
                  is_opencl ? "matrix multiplications use fp32"
                            : "matrix multiplications use fp32, unless oneDNN is faster with it"));
}

void TraceOption::add(CLI::App& command) {
  command
      .add_option("--trace", file,
                  "Write a timeline of kernels, copies and the host to this file, for https://ui.perfetto.dev")
      ->check(file_name());
}

void TraceOption::around(const std::function<void()>& work) const {
  require_writable(file);
  timeline::record(file, work);
}

void add_threads(CLI::App& command) {
  command
      .add_option_function<int>(
          "--threads", [](const int& threads) { set_num_threads(threads); },
          "Number of host threads [$CONCORD_NUM_THREADS, else the number of processors]")
      ->check(whole(1, 4096));
}

void DeviceOption::add(CLI::App& command) {
  add_threads(command);
  command.add_option("--device", selector, "auto, cpu, opencl, opencl:1, opencl:nvidia … [$CONCORD_DEVICE, else auto]")
      ->check(device_selector());
}

}  // namespace concord::cli
