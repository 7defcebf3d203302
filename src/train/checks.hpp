// What a trainer is asked for: checked before any work on the device. Internal to the room.
#pragma once

#include "concord/data/dataset.hpp"
#include "concord/train/epoch_plan.hpp"
#include "concord/train/options.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

/// Throws as data::check; labels that the loss ignores may be outside the classes.
void check_data(const Recipe& recipe, const Dataset& data);
/// Throws when the network does not fit the data set's samples or labels.
void check_fits(const Recipe& recipe, const Dataset& data, Purpose purpose, std::int64_t batch,
                const NamedMetrics& metrics = {});
/// Throws what Trainer::fit throws for a data set or options that do not go with the training or with each other.
void check_fit(const Recipe& recipe, Precision precision, const Dataset& data, const FitOptions& options);
/// Throws ShapeError where the network does not take the batches of an epoch.
void check_batches(const Recipe& recipe, const Dataset& data, const EpochPlan& plan);

}  // namespace concord::train
