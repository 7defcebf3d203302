// TrialRecipe: the training and the network of a trial, from those of the command line and the settings of the trial.
#pragma once

#include <string>

#include "concord/cli/training_recipe.hpp"
#include "concord/search/space.hpp"

namespace concord::cli {

struct TrialRecipe {
  TrainingRecipe recipe;  // its training.model is `network`
  std::string network;    // as find_model takes it: "mlp:depth=2"
};

/// `base` with the settings of a trial: options of a training by their names, sizes of the network by theirs. Throws
/// ArgumentError for a value that the option or the network refuses.
[[nodiscard]] TrialRecipe trial_recipe(const TrainingRecipe& base, const search::Settings& settings);

/// Throws ArgumentError for a parameter that is neither an option of training nor a size of the network, one that is
/// given twice, and a value that is refused. `command` has the options that were given.
void check_space(const search::Space& space, const TrainingRecipe& base, const CLI::App& command);

}  // namespace concord::cli
