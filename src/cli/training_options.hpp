// The options of a training that several subcommands share: MODEL, the optimizer and its numbers, frozen parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/command.hpp"
#include "concord/concord.hpp"
#include "concord/train/source.hpp"

namespace concord::cli {

/// MODEL and its training.
struct TrainingOptions {
  std::string model;
  std::string optimizer = "sgd";
  double lr = 0;             // 0: the optimizer's own default, 0.01 for sgd
  double momentum = -1;      // below 0: 0.9 for sgd, else the optimizer's own default
  double weight_decay = -1;  // below 0: the optimizer's own default
  double eps = -1;           // likewise
  std::vector<double> betas = {};
  bool decay_matrices_only = false;
  std::vector<std::string> freeze = {};
  std::int64_t batch = 64;
  std::uint64_t seed = 1;

  /// `others`: what MODEL may be besides a network, for the help.
  void add_model(CLI::App& command, std::string_view others = {});
  void add_training(CLI::App& command);
  void add_optimizer(CLI::App& command, const char* help);
  [[nodiscard]] optim::Optimizer make_optimizer() const;
  /// Frozen parameters, and those that the optimizer is not for: lars leaves vectors to sgd, muon all but the matrices
  /// inside the network to adamw. The network is traced on batches of `source` for the names.
  [[nodiscard]] std::vector<optim::Group> make_groups(nn::Module& network, const train::Source& source) const;
};

}  // namespace concord::cli
