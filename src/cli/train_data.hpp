// The data of `concord train`, and the network for it.
#pragma once

#include <cstdint>
#include <memory>

#include "concord/cli/trained.hpp"
#include "concord/cli/training_recipe.hpp"
#include "concord/cli/validation.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// What is trained on, validated on and, at the end, tested on.
struct TrainData {
  SharedSamples train;
  SharedSamples test, validation;  // none where there is none
  std::int64_t held_out = 0;       // samples of the training set that are in `validation`
  std::shared_ptr<nn::Module> network;
  Objective objective;
  Objective evaluation;  // TrainerOptions::evaluation
  Trained trained;
};

/// What goes on from another training, `before`, keeps its alphabet, classes and preparation. Notes in `validation`
/// where its samples come from. Throws what reading throws, and ArgumentError or ShapeError for data that does not fit
/// the network; for the test part too, which is used only at the end.
[[nodiscard]] TrainData open_train_data(const TrainingRecipe& recipe, ValidationOptions& validation,
                                        const Trained& before, const models::Model& model);

}  // namespace concord::cli
