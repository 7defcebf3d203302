// Shared options.
#include "options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "dataset.hpp"

namespace concord::cli {
namespace {

CLI::Validator number(const char* range, bool (*inside)(double), const char* help) {
  const auto refusal = [range, inside](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool read = !text.empty() && *end == '\0' && std::isfinite(value);
    return read && inside(value) ? std::string() : fmt::format("{} is no number {}", text, range);
  };
  return {refusal, help, {}};
}

}  // namespace

CLI::Validator positive() {
  return number(
      "above 0", [](double x) { return x > 0; }, "POSITIVE");
}

CLI::Validator not_negative() {
  return number(
      "of 0 or more", [](double x) { return x >= 0; }, "NONNEGATIVE");
}

CLI::Validator from_0_to_1() {
  return number(
      "from 0 to 1", [](double x) { return x >= 0 && x <= 1; }, "0..1");
}

void TrainingOptions::add_model(CLI::App& command) {
  std::string names;
  for (const models::Model& known : models::all()) names += (names.empty() ? "" : ", ") + std::string(known.name);
  command.add_option("model", model, fmt::format("The network: {}", names))->required();
}

void TrainingOptions::add_training(CLI::App& command) {
  command.add_option("--batch", batch, "Samples a step")->capture_default_str();
  command.add_option("--optimizer", optimizer, "How weights are updated")
      ->capture_default_str()
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "rmsprop", "adagrad"}));
  command.add_option("--lr", lr, "Learning rate [0.01 for sgd, else the optimizer's default]")->check(positive());
  command.add_option("--momentum", momentum, "Of sgd [0.9] and rmsprop [0]")->check(from_0_to_1());
  command.add_option("--weight-decay", weight_decay, "[the optimizer's default]")->check(not_negative());
  command.add_option("--seed", seed, "Of first weights, order of samples and dropout")
      ->capture_default_str()
      ->check(not_negative());
}

optim::Optimizer TrainingOptions::make_optimizer() const {
  const auto set = [&](auto parameters, double default_lr) {
    parameters.lr = lr > 0 ? lr : default_lr;
    if (weight_decay >= 0) parameters.weight_decay = weight_decay;
    return parameters;
  };
  if (momentum >= 0 && optimizer != "sgd" && optimizer != "rmsprop") {
    throw ArgumentError(fmt::format("--momentum: {} has none", optimizer));
  }
  if (optimizer == "adam") return set(optim::Adam{}, 1e-3);
  if (optimizer == "adamw") return set(optim::AdamW{}, 1e-3);
  if (optimizer == "adagrad") return set(optim::Adagrad{}, 1e-2);
  if (optimizer == "rmsprop") {
    optim::RMSprop rmsprop = set(optim::RMSprop{}, 1e-2);
    if (momentum >= 0) rmsprop.momentum = momentum;
    return rmsprop;
  }
  optim::Sgd sgd = set(optim::Sgd{}, 1e-2);
  sgd.momentum = momentum >= 0 ? momentum : 0.9;
  return sgd;
}

void SavedModelOptions::add(CLI::App& command) {
  command.add_option("--weights", weights, "Weights or checkpoint (safetensors)")->required()->check(CLI::ExistingFile);
  command.add_option("--data", data, kDataHelp)->required();
  command.add_option("--split", split, "Which part of the data")
      ->capture_default_str()
      ->check(CLI::IsMember({"train", "test"}));
}

void DeviceOption::add(CLI::App& command) {
  command.add_option("--device", selector, "auto, cpu, opencl, opencl:1, opencl:nvidia … [$CONCORD_DEVICE, else auto]");
}

}  // namespace concord::cli
