// Checks the arguments of a trainer before any work on the device. Internal to the room.
#pragma once

#include "concord/data/samples.hpp"
#include "concord/train/epoch_plan.hpp"
#include "concord/train/options.hpp"
#include "concord/train/place.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

/// The labels that the loss leaves out, for each column.
[[nodiscard]] std::vector<std::optional<std::int32_t>> ignored_labels_of(const Recipe& recipe, const Samples& data);
/// For batches of these samples: what a Loader must know of the training. The caller says what becomes of damaged ones.
[[nodiscard]] data::LoaderOptions loader_options(const Recipe& recipe, const Samples& data, std::uint64_t seed);
/// Throws as data::check; labels that the loss ignores may be outside the classes. Labels of samples that are not in
/// memory are checked when they are read.
void check_data(const Recipe& recipe, const Samples& data);
/// Throws if the network does not fit the samples or labels of the data set.
void check_fits(const Recipe& recipe, const Samples& data, Purpose purpose, std::int64_t batch,
                const NamedMetrics& metrics = {});
/// Throws as Trainer::fit does if the data set or the options contradict the training or each other.
void check_fit(const Recipe& recipe, const TrainerOptions& trainer, const Samples& data, const FitOptions& options);
/// Throws ArgumentError for a learning rate that is not finite or negative; `schedule` describes what gave it.
void check_rate(double rate, const std::string& schedule, const Place& at);
/// Throws ShapeError if the network does not accept the batches of an epoch.
void check_batches(const Recipe& recipe, const Samples& data, const EpochPlan& plan);

}  // namespace concord::train
