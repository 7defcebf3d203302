// MODEL, its optimizer, and the groups of its parameters.
#include "concord/cli/training_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "concord/cli/validator.hpp"
#include "concord/core/check.hpp"

namespace concord::cli {

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
  command.add_option("--optimizer", optimizer, help)->capture_default_str()->check(one_of(names));
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
  constexpr std::size_t kMostNames = 8;
  const std::size_t left_out = names.size() - std::min(names.size(), kMostNames);
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

}  // namespace concord::cli
