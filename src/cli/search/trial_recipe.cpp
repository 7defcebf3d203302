// Settings as options: they are parsed as the command line is, so that both refuse the same values.
#include "concord/cli/search/trial_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

// Options that make another training. Those that choose data, its validation and the length of a training are not
// among them: trials would not compare.
constexpr std::array<std::string_view, 22> kSearchedOptions{"accumulate",
                                                            "augment",
                                                            "auxiliary",
                                                            "batch",
                                                            "betas",
                                                            "class-weights",
                                                            "clip-norm",
                                                            "clip-value",
                                                            "cutmix",
                                                            "ema",
                                                            "decay-matrices-only",
                                                            "eps",
                                                            "label-smoothing",
                                                            "last-batch",
                                                            "lr",
                                                            "mixup",
                                                            "momentum",
                                                            "optimizer",
                                                            "precision",
                                                            "sampler",
                                                            "schedule",
                                                            "weight-decay"};

bool is_searched_option(std::string_view name) {
  return std::ranges::find(kSearchedOptions, name) != kSearchedOptions.end();
}

/// The name without sizes. A path may have a colon too.
std::string base_name(const std::string& network) {
  return network.ends_with(".onnx") ? network : network.substr(0, network.find(':'));
}

/// "mlp:width=10" and "depth", "2": "mlp:width=10,depth=2".
std::string with_size(const std::string& network, const search::Setting& size) {
  const char separator = network.find(':') == std::string::npos ? ':' : ',';
  return fmt::format("{}{}{}={}", network, separator, size.name, size.value);
}

bool has_size(const std::string& network, std::string_view name) {
  return network.find(fmt::format(":{}=", name)) != std::string::npos ||
         network.find(fmt::format(",{}=", name)) != std::string::npos;
}

void check_name(const search::Parameter& parameter, const TrainingRecipe& base, const CLI::App& command) {
  const std::string& name = parameter.name;
  if (is_searched_option(name)) {
    CONCORD_CHECK(command.get_option("--" + name)->count() == 0, ArgumentError,
                  "--space: {} is in the space and also given as --{}", name, name);
    return;
  }
  std::vector<std::string> names;
  for (const models::Size& size : find_model(base_name(base.training.model)).sizes) names.emplace_back(size.name);
  if (std::ranges::find(names, name) != names.end()) {
    CONCORD_CHECK(!has_size(base.training.model, name), ArgumentError,
                  "--space: {} is in the space and also given in {}", name, base.training.model);
    return;
  }
  const std::string sizes = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  names.insert(names.end(), kSearchedOptions.begin(), kSearchedOptions.end());
  const auto nearest = nearest_name(name, names);
  throw ArgumentError(fmt::format("--space: {} is no option of training and no size of {}{} Options: {}; sizes: {}",
                                  printable(name), base_name(base.training.model),
                                  nearest ? fmt::format("; did you mean {}?", *nearest) : ".",
                                  fmt::join(kSearchedOptions, ", "), sizes));
}

}  // namespace

TrainingRecipe recipe_of_trial(const TrainingRecipe& base, const search::Settings& settings) {
  TrainingRecipe recipe = base;
  std::string& network = recipe.training.model;
  std::vector<std::string> words;  // CLI11 takes the last one first
  for (const search::Setting& setting : settings) {
    if (is_searched_option(setting.name)) {
      words.insert(words.begin(), fmt::format("--{}={}", setting.name, setting.value));
    } else {
      network = with_size(network, setting);
    }
  }
  static_cast<void>(find_model(network));
  CLI::App app;
  recipe.add(app);
  app.get_option("--data")->required(false);
  try {
    app.parse(std::move(words));
  } catch (const CLI::Error& error) {
    throw ArgumentError(error.what());
  }
  return recipe;
}

void check_space(const search::Space& space, const TrainingRecipe& base, const CLI::App& command) {
  search::Settings usual;
  for (const search::Parameter& parameter : space.parameters()) {
    check_name(parameter, base, command);
    std::vector<std::string> values = parameter.choices;
    if (values.empty()) values = {parameter.at(0), parameter.at(1)};  // the ends
    for (const std::string& value : values) static_cast<void>(recipe_of_trial(base, {{parameter.name, value}}));
    usual.push_back({parameter.name, values[0]});
  }
  static_cast<void>(recipe_of_trial(base, usual));
}

}  // namespace concord::cli
