// The training of a trial: that of the command line with the settings of the trial.
#pragma once

#include "concord/cli/training_recipe.hpp"
#include "concord/search/space.hpp"

namespace concord::cli {

/// `base` with the settings of a trial: options of a training by their names, sizes of the network by theirs, which
/// become part of its training.model. Throws ArgumentError for a value that the option or the network refuses.
[[nodiscard]] TrainingRecipe recipe_of_trial(const TrainingRecipe& base, const search::Settings& settings);

/// Throws ArgumentError for a parameter that is neither an option of training nor a size of the network, one that is
/// given twice, and a value that is refused. `command` has the options that were given.
void check_space(const search::Space& space, const TrainingRecipe& base, const CLI::App& command);

}  // namespace concord::cli
