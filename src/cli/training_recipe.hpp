// TrainingRecipe: the options of how a network is trained, which `train` and `crossval` share.
#pragma once

#include <cstdint>
#include <string>

#include "concord/cli/dataset.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

struct TrainingRecipe {
  TrainingOptions training;  // MODEL, the optimizer, batch and seed
  PrecisionOption precision;
  MemoryBudgetOption memory_budget;
  DataOptions data;
  std::string augment = "none", loader_threads = "auto", bad = "skip", sampler = "shuffle", class_weights;
  std::string schedule = "constant", last_batch = "keep";
  FitOptions fit;  // epochs, max_steps, mixing and nan_trace
  double clip_norm = 0, clip_value = 0, ema_decay = 0;
  int accumulate = 1;
  std::int64_t patience = 0;
  loss::CrossEntropy cross_entropy;
  bool check_gradients = true;
  bool auxiliary = false;

  /// MODEL is added by the command.
  void add(CLI::App& command);
  /// --data, with what --bad says of the rows of a table.
  [[nodiscard]] DataOptions data_options() const;
  /// The network for these samples. Throws ArgumentError if options of the loss do not fit it.
  [[nodiscard]] models::Variant variant(const DataSource& source, const Samples& samples) const;
  /// What it is trained for. Throws ArgumentError if options of the loss do not fit it.
  [[nodiscard]] Objective objective(const DataSource& source, const Samples& samples, const models::Model& model) const;
  /// What it is evaluated by (TrainerOptions::evaluation): the same without smoothed labels and weights of classes.
  [[nodiscard]] Objective evaluation(const DataSource& source, const Samples& samples) const;
  [[nodiscard]] TrainerOptions trainer_options(const models::Model& model, const Samples& samples,
                                               nn::Module& network) const;
  /// All but the validation set and what watches the training.
  [[nodiscard]] FitOptions fit_options() const;
  /// Throws ArgumentError if options need a validation set.
  void check_without_validation() const;
};

}  // namespace concord::cli
