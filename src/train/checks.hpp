// Checks the arguments of a trainer before any work on the device. Internal to the room.
#pragma once

#include "concord/data/dataset.hpp"
#include "concord/train/epoch_plan.hpp"
#include "concord/train/options.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

/// Throws as data::check; labels that the loss ignores may be outside the classes.
void check_data(const Recipe& recipe, const Dataset& data);
/// Throws if the network does not fit the samples or labels of the data set.
void check_fits(const Recipe& recipe, const Dataset& data, Purpose purpose, std::int64_t batch,
                const NamedMetrics& metrics = {});
/// Throws as Trainer::fit does if the data set or the options contradict the training or each other.
void check_fit(const Recipe& recipe, Precision precision, const Dataset& data, const FitOptions& options);
/// Throws ShapeError if the network does not accept the batches of an epoch.
void check_batches(const Recipe& recipe, const Dataset& data, const EpochPlan& plan);

}  // namespace concord::train
