// The parts of the data, the network for them and what it is trained for.
#include "concord/cli/train_data.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/cli/dataset.hpp"
#include "concord/core/check.hpp"
#include "concord/train/checks.hpp"

namespace concord::cli {
namespace {

/// What could not be evaluated behind the training is refused before it.
void check_test(const TrainData& data) {
  const train::Recipe recipe{data.network, data.objective, optim::Sgd{}, {}};
  const std::int64_t batch = std::min(EvaluateOptions().batch, data.test->size());
  try {
    train::check_data(recipe, *data.test);
    train::check_fits(recipe, *data.test, train::Purpose::evaluate, batch);
  } catch (const ArgumentError& error) {
    throw ArgumentError(fmt::format("the test part of the data: {}", error.what()));
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("the test part of the data: {}", error.what()));
  }
}

}  // namespace

TrainData open_train_data(const TrainingRecipe& recipe, ValidationOptions& validation, const Trained& before,
                          const models::Model& model) {
  DataSource source(recipe.data_options(), model, recipe.training.seed, before);
  if (validation.is_split() && (!validation.may_use_part() || source.spec().option("val").empty())) {
    // Rows to validate on are as new to the preparation as to the network.
    source.fit_on([&](std::int64_t rows) {
      return data::split_rows(rows, validation.held_out_of(recipe.data.text, rows), recipe.data.text, validation.seed)
          .first;
    });
  }
  TrainData data;
  data.train = source.augmented("train", data::parse_augment(recipe.augment));
  data.network = source.make(recipe.variant(source, *data.train));
  data.trained = source.trained(*data.train);
  data.test = source.part("test");
  if (validation.source == "test") {
    CONCORD_CHECK(data.test, ArgumentError, "--validate test: {} has no test part", recipe.data.text);
    data.validation = data.test;
  }
  if (validation.is_split() && validation.may_use_part()) data.validation = source.part("validation");
  if (validation.is_split()) validation.note_part(bool(data.validation), recipe.data.text);
  if (validation.is_split() && !data.validation) {
    data.held_out = validation.held_out_of(data.train->name, data.train->size());
    // The same samples of two views: the one to train on is augmented.
    const SharedSamples plain = recipe.augment == "none" ? data.train : source.part("train");
    data.validation = data::split(plain, data.held_out, validation.seed).second;
    data.train = data::split(data.train, data.held_out, validation.seed).first;
  }
  data.objective = recipe.objective(source, *data.train, model);  // held-out samples count in no weight of a class
  data.evaluation = recipe.evaluation(source, *data.train);
  if (data.test) check_test(data);
  return data;
}

}  // namespace concord::cli
