// ResumedRates: whether a training that goes on has the learning rates of the one that was stopped. Internal to the
// room.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "concord/optim/schedule.hpp"
#include "concord/train/place.hpp"

namespace concord::train {

/// Rates of a checkpoint, until a fit has compared its own with them.
class ResumedRates {
 public:
  ResumedRates() = default;
  /// `rates` are CheckpointInfo::schedule.
  ResumedRates(std::filesystem::path checkpoint, std::map<std::string, std::string> rates)
      : checkpoint_(std::move(checkpoint)), rates_(std::move(rates)) {}
  /// Warns, at the first call after a resume, when this base rate and schedule are not those of the checkpoint: another
  /// rate may be meant, but with it the training is not the one that was stopped. `plan` is that of its epochs.
  void compare(const Place& at, const EpochPlan& plan, double base, const optim::Schedule& schedule);

 private:
  std::filesystem::path checkpoint_;
  std::map<std::string, std::string> rates_;
};

}  // namespace concord::train
