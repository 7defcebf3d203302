// Trainings on one device and on ranks that each have a part of the network, and their comparison.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collective/rank_threads.hpp"
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

namespace concord::test {

using collective::GroupPtr;

/// What a training leaves behind: the weights in a file, and what was reported.
struct Result {
  io::TensorMap weights;
  std::vector<double> losses, accuracies = {};
  std::int64_t steps = 0;
};

using MakeTrainer = std::function<Trainer(const DevicePtr& device, const TrainerOptions& options)>;
/// Called between making a trainer and fit.
using Before = std::function<void(Trainer&)>;

/// Sequences in which each token follows from the one before.
inline Dataset token_data(std::int64_t samples, std::int64_t length, int tokens) {
  Tensor features(DType::i32, Shape{samples, length}), labels(DType::i32, Shape{samples, length});
  for (std::int64_t i = 0; i < samples * length; ++i) {
    const auto token = static_cast<std::int32_t>((i * 7 + i / length * 3) % tokens);
    features.values<std::int32_t>()[static_cast<std::size_t>(i)] = token;
    labels.values<std::int32_t>()[static_cast<std::size_t>(i)] = (token * 5 + 1) % tokens;
  }
  return data::from_arrays(features, labels, tokens);
}

inline void note(Result& result, const Trainer& trainer, const History& history) {
  result.steps = trainer.steps_done();
  for (const EpochReport& epoch : history.epochs) {
    result.losses.push_back(epoch.loss);
    if (!epoch.validation) continue;
    result.losses.push_back(epoch.validation->loss);
    result.accuracies.push_back(epoch.validation->accuracy.value_or(0));
  }
}

inline Result on_one(const DevicePtr& device, const TrainerOptions& options, const Samples& data, const FitOptions& fit,
                     const MakeTrainer& make, const Before& before = {}) {
  const TemporaryFolder folder;
  Trainer trainer = make(device, options);
  if (before) before(trainer);
  Result result;
  note(result, trainer, trainer.fit(data, fit));
  trainer.save(folder / "weights.safetensors");
  result.weights = io::read_safetensors(folder / "weights.safetensors").tensors;
  return result;
}

/// Rank r on device r, or on the last one. Whole parameters and what is reported must be the same on all ranks.
inline Result on_parts(const std::vector<DevicePtr>& on, ModelParallel parallel, TrainerOptions options,
                       const Dataset& data, const FitOptions& fit, const MakeTrainer& make, const Before& before = {}) {
  const TemporaryFolder folder;
  options.model_parallel = parallel;
  const auto ranks = static_cast<std::size_t>(parallel.ranks);
  std::vector<Result> results(ranks);
  std::vector<std::map<std::string, std::vector<std::byte>>> bytes(ranks);
  const auto errors = on_ranks(parallel.ranks, [&](const GroupPtr& group) {
    const auto rank = static_cast<std::size_t>(group->rank());
    TrainerOptions own = options;
    own.group = group;
    Trainer trainer = make(Device::open(on[std::min(rank, on.size() - 1)]->info().id), own);
    if (before) before(trainer);
    note(results[rank], trainer, trainer.fit(data, fit));
    trainer.save(folder / "weights.safetensors");
    bytes[rank] = bytes_of(trainer);
  });
  REQUIRE(errors == std::vector<std::string>(ranks));
  results[0].weights = io::read_safetensors(folder / "weights.safetensors").tensors;
  bool is_any_divided = false;
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    CHECK(results[rank].losses == results[0].losses);
    for (const auto& [name, values] : bytes[rank]) {
      INFO(name);
      const auto whole = results[0].weights.find(name);
      if (whole == results[0].weights.end()) continue;
      if (values.size() == whole->second.bytes().size() && options.ema_decay == 0) {
        CHECK(bytes[0].at(name) == values);
      } else if (values.size() < whole->second.bytes().size()) {
        is_any_divided = true;
      }
    }
  }
  CHECK(is_any_divided);
  return results[0];
}

inline void check_close(const Result& one, const Result& parts, double margin) {
  REQUIRE(parts.losses.size() == one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) CHECK(parts.losses[i] == Approx(one.losses[i]).margin(margin));
  REQUIRE(parts.weights.size() == one.weights.size());
  for (const auto& [name, tensor] : one.weights) {
    INFO(name);
    REQUIRE(parts.weights.at(name).spec() == tensor.spec());
    double furthest = 0;
    for (std::size_t i = 0; i < tensor.values<float>().size(); ++i) {
      const float a = tensor.values<float>()[i], b = parts.weights.at(name).values<float>()[i];
      furthest = std::isfinite(b) ? std::max(furthest, static_cast<double>(std::abs(a - b))) : INFINITY;
    }
    CHECK(furthest < margin);
  }
}

/// The second of three ranks fails in the midst of a training; the others end within the deadline, and name it.
inline void check_lost_rank(const MakeTrainer& make, const TrainerOptions& options, const Dataset& data,
                            std::int64_t batch) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = on_ranks(
      3,
      [&](const GroupPtr& group) {
        TrainerOptions own = options;
        own.group = group;
        Trainer trainer = make(Device::open(devices()[0]->info().id), own);
        FitOptions fit{.epochs = 100, .batch = batch};
        if (group->rank() == 1) {
          fit.stop = [&trainer]() -> bool {
            if (trainer.steps_done() >= 8) throw Error("a fault of this rank");
            return false;
          };
        }
        trainer.fit(data, fit);
      },
      std::chrono::seconds(5));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  CHECK(errors[1] == "a fault of this rank");
  CHECK_THAT(errors[0], contains("rank 1"));
  CHECK_THAT(errors[2], contains("rank 1"));
}

}  // namespace concord::test
