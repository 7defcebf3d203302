// What a training leaves behind, by which tests compare trainings on one device and on several.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "concord/train/trainer.hpp"
#include "concord_test.hpp"

namespace concord::test {

struct TrainingResult {
  std::map<std::string, std::vector<float>> weights;  // also states of the optimizer, averages and statistics
  std::vector<double> losses;                         // of each epoch, and of its validation
  std::int64_t steps = 0;
};

/// The fp32 variables without what each rank has for itself: its place in the data, and gradients on their way.
inline TrainingResult result_of(const Trainer& trainer, const History& history) {
  TrainingResult result{{}, {}, trainer.steps_done()};
  for (const std::string& name : trainer.variables()->persistent_names()) {
    const bool is_own = name.starts_with("train.") || name == kRandomState || name.ends_with(".accumulated") ||
                        name.starts_with("optim.accumulated") || name.starts_with("optim.gathered");
    if (is_own) continue;
    const Tensor tensor = trainer.variables()->read(name);
    if (tensor.dtype() != DType::f32) continue;
    result.weights[name] = {tensor.values<float>().begin(), tensor.values<float>().end()};
  }
  for (const EpochReport& epoch : history.epochs) {
    result.losses.push_back(epoch.loss);
    if (epoch.validation) result.losses.push_back(epoch.validation->loss);
  }
  return result;
}

/// Each rank has running statistics of its own batches.
inline TrainingResult without_statistics(TrainingResult result) {
  std::erase_if(result.weights, [](const auto& one) { return one.first.find("running_") != std::string::npos; });
  return result;
}

/// To the bit. `other` may have more values.
inline void check_equal(const TrainingResult& one, const TrainingResult& other) {
  CHECK(other.losses == one.losses);
  CHECK(other.steps == one.steps);
  for (const auto& [name, values] : one.weights) {
    INFO(name);
    const auto found = other.weights.find(name);
    REQUIRE(found != other.weights.end());
    REQUIRE(found->second.size() == values.size());
    CHECK(std::memcmp(found->second.data(), values.data(), values.size() * sizeof(float)) == 0);
  }
}

/// The last loss, and the values that both have.
inline void check_close(const TrainingResult& one, const TrainingResult& other, double margin) {
  REQUIRE(other.losses.empty() == one.losses.empty());
  if (!one.losses.empty()) CHECK(other.losses.back() == Approx(one.losses.back()).margin(margin));
  for (const auto& [name, values] : one.weights) {
    INFO(name);
    const auto found = other.weights.find(name);
    if (found == other.weights.end()) continue;  // of the joining of batches
    REQUIRE(found->second.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(found->second[i] == Approx(values[i]).margin(margin));
  }
}

}  // namespace concord::test
