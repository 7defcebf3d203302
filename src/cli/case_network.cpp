// The network of a case as text and back.
#include "concord/cli/case_network.hpp"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "concord/cli/dataset.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

const std::string& text_of(const std::map<std::string, std::string>& network, const std::string& key) {
  const auto found = network.find(key);
  if (found == network.end()) throw FormatError(fmt::format("the case has no {} of its network", key));
  return found->second;
}

template <class Number>
Number number_of(const std::map<std::string, std::string>& network, const std::string& key) {
  const std::string& text = text_of(network, key);
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) throw FormatError(fmt::format("the case has the {} \"{}\"", key, text));
  return number;
}

/// A number that was not given, or that cases of earlier versions do not have, stays as it is.
void read_given(const std::map<std::string, std::string>& network, const std::string& key, double& number) {
  const auto found = network.find(key);
  if (found != network.end() && !found->second.empty()) number = number_of<double>(network, key);
}

TrainingOptions training_of(const std::map<std::string, std::string>& network) {
  TrainingOptions training;
  training.model = text_of(network, "model");
  training.optimizer = text_of(network, "optimizer");
  training.lr = number_of<double>(network, "lr");
  training.momentum = number_of<double>(network, "momentum");
  training.weight_decay = number_of<double>(network, "weight_decay");
  read_given(network, "eps", training.eps);
  std::array<double, 2> betas{-1, -1};
  read_given(network, "beta1", betas[0]);
  read_given(network, "beta2", betas[1]);
  if (betas[0] >= 0 && betas[1] >= 0) training.betas = {betas[0], betas[1]};
  training.decay_matrices_only = text_of(network, "decay_matrices_only") == "true";
  training.freeze = split(text_of(network, "freeze"), '\n');
  training.batch = number_of<std::int64_t>(network, "batch");
  if (training.batch < 1) throw FormatError(fmt::format("the case has the batch {}", training.batch));
  return training;
}

}  // namespace

std::map<std::string, std::string> case_network(const TrainingOptions& training, const Samples& data, int classes,
                                                const std::string& precision) {
  const auto beta = [&](std::size_t i) {
    return training.betas.empty() ? std::string() : fmt::format("{}", training.betas.at(i));
  };
  return {{"model", training.model},
          {"sample", sample_text(data.feature_specs()[0].spec.shape)},
          {"classes", fmt::format("{}", classes)},
          {"batch", fmt::format("{}", training.batch)},
          {"seed", fmt::format("{}", training.seed)},
          {"precision", precision},
          {"optimizer", training.optimizer},
          {"lr", fmt::format("{}", training.lr)},
          {"momentum", fmt::format("{}", training.momentum)},
          {"weight_decay", fmt::format("{}", training.weight_decay)},
          {"beta1", beta(0)},
          {"beta2", beta(1)},
          {"eps", fmt::format("{}", training.eps)},
          {"decay_matrices_only", training.decay_matrices_only ? "true" : "false"},
          {"freeze", fmt::format("{}", fmt::join(training.freeze, "\n"))}};
}

std::map<std::string, std::string> case_program(const std::string& program, const std::vector<std::string>& arguments) {
  return {{"program", std::filesystem::absolute(program).lexically_normal().string()},
          {"arguments", nlohmann::json(arguments).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
}

std::optional<CaseProgram> program_of(const std::map<std::string, std::string>& network) {
  if (!network.contains("program")) return std::nullopt;
  return read_json(text_of(network, "arguments"), "the arguments of the case's program",
                   [&](const nlohmann::json& arguments) {
                     return CaseProgram{network.at("program"), arguments};
                   });
}

std::unique_ptr<TrainingStep> case_step(const std::map<std::string, std::string>& network) {
  const TrainingOptions training = training_of(network);
  const models::Model& model = find_model(training.model);
  const Shape sample = sample_shape(text_of(network, "sample"), model);
  const std::shared_ptr<nn::Module> module =
      make_network(model, {.classes = number_of<int>(network, "classes"), .input = sample});
  const train::Source source = source_of(model, *module, sample);
  return std::make_unique<TrainingStep>(*module, objective_of(model), training.make_optimizer(),
                                        optim::MinimizeOptions{.groups = training.make_groups(*module, source)},
                                        precision_of(text_of(network, "precision")), source, training.batch);
}

}  // namespace concord::cli
