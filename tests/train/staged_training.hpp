// Trainings of networks in stages, and of the same networks on one device.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/divided_training.hpp"

namespace concord::test {

inline MakeTrainer trainer_of(const char* name, models::Variant variant, const optim::Optimizer& optimizer) {
  return [name, variant, optimizer](const DevicePtr& device, const TrainerOptions& options) {
    return Trainer{models::make(name, variant), models::loss_of(models::find(name), variant), optimizer, device,
                   options};
  };
}

/// Trainers that continue from this checkpoint.
inline MakeTrainer resuming(const MakeTrainer& make, const std::filesystem::path& file) {
  return [make, file](const DevicePtr& device, const TrainerOptions& options) {
    Trainer trainer = make(device, options);
    trainer.resume(file);
    return trainer;
  };
}

/// With updates of `micro` batches.
inline Result on_one(const DevicePtr& device, int micro, TrainerOptions options, const Samples& data,
                     const FitOptions& fit, const MakeTrainer& make) {
  options.accumulate = micro;
  return on_one(device, options, data, fit, make);
}

/// What rank 0 has; all must report the same. The ranks use what `through` makes of their group.
inline Result in_stages(const DevicePtr& device, Pipeline pipeline, TrainerOptions options, const Samples& data,
                        const FitOptions& fit, const MakeTrainer& make,
                        const std::function<GroupPtr(const GroupPtr&)>& through = {}) {
  const TemporaryFolder folder;
  options.pipeline = pipeline;
  std::vector<Result> results(static_cast<std::size_t>(pipeline.stages));
  const auto errors = on_ranks(pipeline.stages, [&](const GroupPtr& group) {
    TrainerOptions own = options;
    own.group = through ? through(group) : group;
    Trainer trainer = make(Device::open(device->info().id), own);
    note(results[static_cast<std::size_t>(group->rank())], trainer, trainer.fit(data, fit));
    trainer.save(folder / "weights.safetensors");
  });
  REQUIRE(errors == std::vector<std::string>(static_cast<std::size_t>(pipeline.stages)));
  for (const Result& result : results) {
    CHECK(result.losses == results[0].losses);
    CHECK(result.accuracies == results[0].accuracies);
    CHECK(result.steps == results[0].steps);
  }
  results[0].weights = io::read_safetensors(folder / "weights.safetensors").tensors;
  return results[0];
}

/// To the bit.
inline void check_equal(const Result& one, const Result& staged) {
  CHECK(staged.losses == one.losses);
  CHECK(staged.accuracies == one.accuracies);
  CHECK(staged.steps == one.steps);
  CHECK(staged.weights.size() == one.weights.size());
  for (const auto& [name, tensor] : one.weights) {
    INFO(name);
    const auto found = staged.weights.find(name);
    REQUIRE(found != staged.weights.end());
    CHECK(std::ranges::equal(found->second.bytes(), tensor.bytes()));
  }
}

}  // namespace concord::test
