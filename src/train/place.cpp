// Places in checkpoints, and from step to step.
#include "concord/train/place.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/train/loss_sums.hpp"
#include "concord/train/source.hpp"

namespace concord::train {
namespace {

std::int64_t extra_number(const io::CheckpointInfo& info, const std::string& name, const std::string& file) {
  const auto found = info.extra.find(name);
  CONCORD_CHECK(found != info.extra.end(), FormatError, "{}: the checkpoint has no '{}'", file, name);
  const auto number = number_in_text<std::int64_t>(found->second);
  CONCORD_CHECK(number && *number >= 0, FormatError, "{}: the checkpoint's '{}' is '{}', not a number", file, name,
                found->second);
  return *number;
}

/// Batches an update; checkpoints that do not say were written without accumulation.
std::int64_t accumulation_of(const io::CheckpointInfo& info, const std::string& file) {
  if (!info.extra.contains("accumulate")) return 1;
  const std::int64_t accumulate = extra_number(info, "accumulate", file);
  CONCORD_CHECK(accumulate >= 1, FormatError, "{}: the checkpoint's 'accumulate' is 0", file);
  return accumulate;
}

/// The validation losses; numbers with spaces between.
std::vector<double> losses_of(const io::CheckpointInfo& info, const std::string& file) {
  std::vector<double> losses;
  const auto found = info.extra.find("losses");
  if (found == info.extra.end()) return losses;
  const char *at = found->second.data(), *const end = at + found->second.size();
  while (at != end) {
    double loss = 0;
    const auto [next, error] = std::from_chars(at, end, loss);
    CONCORD_CHECK(error == std::errc{} && (next == end || *next == ' '), FormatError,
                  "{}: the checkpoint's 'losses' are '{}', not numbers", file, found->second);
    losses.push_back(loss);
    at = next == end ? end : next + 1;
  }
  return losses;
}

/// The only element of an i32 tensor of a checkpoint. Throws FormatError when there is no such tensor.
std::int64_t counter_of(const io::Checkpoint& checkpoint, const std::string& name, const std::string& file) {
  const auto found = checkpoint.tensors.find(name);
  CONCORD_CHECK(
      found != checkpoint.tensors.end() && found->second.dtype() == DType::i32 && found->second.elements() == 1,
      FormatError, "{}: the checkpoint has no i32 number '{}'", file, name);
  return found->second.values<std::int32_t>()[0];
}

/// Of a training that stopped within an epoch.
void check_position(const Place& at, const io::Checkpoint& checkpoint, const std::string& file) {
  CONCORD_CHECK(at.batch >= 1 && at.position < at.samples && at.position % at.batch == 0, FormatError,
                "{}: the checkpoint is at sample {} of {}, in batches of {}", file, at.position, at.samples, at.batch);
  const std::string cursor = cursor_name("train");
  const std::int64_t batches = counter_of(checkpoint, cursor, file);
  CONCORD_CHECK(batches == at.position / at.batch, FormatError,
                "{}: the checkpoint is after {} batches of its epoch, but its '{}' is {}", file, at.position / at.batch,
                cursor, batches);
}

}  // namespace

Place Place::of(const io::Checkpoint& checkpoint, const std::string& file) {
  constexpr std::int64_t kMostEpochs = std::numeric_limits<std::uint32_t>::max();
  const io::CheckpointInfo& info = checkpoint.info;
  Place at;
  at.seed = info.seed;
  at.epoch = info.epoch;
  at.step = info.step;
  at.position = info.position;
  at.first_epoch = extra_number(info, "first_epoch", file);
  at.batch = extra_number(info, "batch", file);
  at.samples = extra_number(info, "samples", file);
  CONCORD_CHECK(at.epoch <= kMostEpochs && at.first_epoch <= at.epoch && info.permutation_epoch == at.epoch,
                FormatError,
                "{}: the checkpoint has {} epochs done, began at epoch {} and has the order of samples of epoch {}; "
                "they do not agree",
                file, at.epoch, at.first_epoch, info.permutation_epoch);
  const std::int64_t steps = counter_of(checkpoint, optim::kStep, file);
  at.accumulate = accumulation_of(info, file);
  at.updates = info.extra.contains("updates") ? extra_number(info, "updates", file) : at.step / at.accumulate;
  CONCORD_CHECK(at.updates <= at.step && at.updates >= at.step / at.accumulate, FormatError,
                "{}: the checkpoint has {} steps done, {} per update, but {} updates", file, at.step, at.accumulate,
                at.updates);
  // With a scaled loss a step whose gradients overflow updates nothing, as does one whose labels are all ignored.
  const auto precision = info.extra.find("precision");  // early checkpoints do not say
  const bool is_scaled = precision == info.extra.end() ? checkpoint.tensors.contains(optim::kScale)
                                                       : precision->second == name_of(Precision::fp16);
  const bool may_skip = is_scaled || checkpoint.tensors.contains(loss_weight_name("train", 0));
  const std::int64_t most_steps = std::min<std::int64_t>(at.updates, optim::kMostSteps);
  CONCORD_CHECK(steps == most_steps || (may_skip && steps < most_steps), FormatError,
                "{}: the checkpoint has {} steps done, {} per update, but its '{}' is {}", file, at.step, at.accumulate,
                optim::kStep, steps);
  if (at.position > 0) check_position(at, checkpoint, file);
  at.losses = losses_of(info, file);
  return at;
}

void Place::write_to(io::CheckpointInfo& info) const {
  info.epoch = epoch;
  info.step = step;
  info.position = position;
  info.permutation_epoch = static_cast<std::uint32_t>(epoch);
  info.seed = seed;
  info.extra.insert({{"first_epoch", std::to_string(first_epoch)},
                     {"batch", std::to_string(batch)},
                     {"samples", std::to_string(samples)},
                     {"accumulate", std::to_string(accumulate)},
                     {"losses", fmt::format("{}", fmt::join(losses, " "))}});
  if (accumulate > 1) info.extra["updates"] = std::to_string(updates);
}

void Place::require_fits(const EpochPlan& plan) const {
  CONCORD_CHECK(position == 0 || (batch == plan.full.size && samples == plan.samples), ArgumentError,
                "the training stopped within an epoch of {} sample{} in batches of {}; it cannot continue with {} in "
                "batches of {}",
                samples, samples == 1 ? "" : "s", batch, plan.samples, plan.full.size);
  CONCORD_CHECK(
      position <= plan.full.rows * plan.full.size, ArgumentError,
      "the training stopped before the last batch of an epoch, which this one merges into the one before; use "
      "the --last-batch (FitOptions::last_batch) of the stopped training");
}

void Place::begin_epoch(const EpochPlan& plan) {
  batch = plan.full.size;
  samples = plan.samples;
}

void Place::move_to(const EpochPlan& plan, std::int64_t batches) {
  const std::int64_t before = batches_done(plan);
  step += batches - before;
  updates += plan.updates_in(batches, accumulate) - plan.updates_in(before, accumulate);
  position = batches == plan.batches() ? plan.samples : batches * plan.full.size;
}

void Place::end_epoch() {
  ++epoch;
  position = 0;
}

std::string Place::next_step(const EpochPlan& plan) const {
  return fmt::format("step {} (epoch {}, batch {})", step + 1, epoch + 1, batches_done(plan) + 1);
}

}  // namespace concord::train
