// TrialTraining: trains the trials of a search. The data is read once, and lies on each device once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "concord/cli/search/trial_recipe.hpp"
#include "concord/cli/validation.hpp"
#include "concord/search/study.hpp"

namespace concord::cli {

enum class SearchMonitor : std::uint8_t { loss, accuracy };

/// The weights of the best trial, in the folder of a search.
inline constexpr const char* kBestFile = "best.safetensors";

/// The score of the best trial of an earlier search, the smaller the better, by the metadata of its weights; nothing if
/// there is no such file. Throws ArgumentError if the file does not say it, or was the best by another monitor.
[[nodiscard]] std::optional<double> score_of_best(const std::filesystem::path& file, SearchMonitor monitor);

/// Called by several threads, with another device in each.
class TrialTraining {
 public:
  /// Reads the data. Throws what reading throws, and ArgumentError if the data does not fit the network, or if there is
  /// no accuracy to look at. Checkpoints of trials are in `folder`; with an empty one there are none. With
  /// `keeps_best` the weights of the best trial are there too, best.safetensors.
  TrialTraining(const TrainingRecipe& base, ValidationOptions& validation, SearchMonitor monitor,
                std::filesystem::path folder, bool keeps_best);
  ~TrialTraining();

  /// Trains a trial until it has the epochs of the job, from its checkpoint if it has one, and reports to the study. A
  /// trial that does not fit into memory, becomes NaN or is refused by the network has failed. Returns false if it was
  /// interrupted by a signal.
  [[nodiscard]] bool run(search::Study& study, const search::Job& job, const DevicePtr& device);

  /// "60000 samples, 6000 for validation".
  [[nodiscard]] std::string text_of_data() const;
  /// Bytes of data that went to devices.
  [[nodiscard]] std::size_t uploaded_bytes() const;
  /// Removes the checkpoints of trials that cannot go on: those of paused ones stay, as more trials may promote them.
  void remove_checkpoints(const search::Study& study) const;

 private:
  struct Data;
  struct Running;
  [[nodiscard]] Data& data_for(const TrainingRecipe& recipe);
  [[nodiscard]] bool train(search::Study& study, const search::Job& job, const DevicePtr& device);
  [[nodiscard]] double score_of(const search::EpochPoint& point) const;
  [[nodiscard]] std::filesystem::path checkpoint_of(std::int64_t trial) const;

  const TrainingRecipe& base_;
  ValidationOptions& validation_;
  SearchMonitor monitor_;
  std::filesystem::path folder_;
  std::filesystem::path best_file_;
  mutable std::mutex mutex_;  // of what is below
  std::map<std::string, std::unique_ptr<Data>> data_;
};

}  // namespace concord::cli
