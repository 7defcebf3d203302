// What a Trainer holds; shared by trainer.cpp (weights, files), fit.cpp and evaluate.cpp. Internal to the room.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>

#include "concord/core/exclusive.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/io/checkpoint.hpp"
#include "concord/train/options.hpp"
#include "concord/train/programs.hpp"
#include "concord/train/trainer.hpp"

namespace concord {

struct TrainerState {
  train::Recipe recipe;
  DevicePtr device;
  TrainerOptions options;
  VariablesPtr variables;
  train::ProgramCache programs = {};
  Exclusive use = {};

  /// Where the training stands.
  struct Place {
    std::int64_t epoch = 0;               // epochs done
    std::int64_t step = 0;                // batches done
    std::int64_t updates = 0;             // for schedules: those that were left out count, too
    std::int64_t position = 0;            // samples of the current epoch done
    std::int64_t first_epoch = 0;         // of the current call of fit, or of the one that was stopped
    std::int64_t batch = 0, samples = 0;  // of the epoch that `position` lies in
  };
  Place at = {};

  /// Specs of weights and running statistics by name; empty until a program has been made.
  std::map<std::string, TensorSpec> weights = {};
  /// Specs of everything that a checkpoint holds, as far as the programs made so far know it.
  std::map<std::string, TensorSpec> known = {};
  /// Read from files, waiting for the variables that they belong to; weights come after a checkpoint's. What has been
  /// taken over is no longer in the checkpoint here.
  struct WeightsFile {
    std::filesystem::path path;
    io::LoadOptions options;
    /// The tensors that fit; a warning says what does not where the load is not strict.
    [[nodiscard]] io::TensorMap load(const std::map<std::string, TensorSpec>& network) const;
  };
  std::optional<WeightsFile> pending_weights = std::nullopt;
  std::optional<io::Checkpoint> pending_checkpoint = std::nullopt;
  std::filesystem::path checkpoint_path = {};
  /// Rates of the checkpoint, until a fit has compared its own with them.
  std::map<std::string, std::string> resumed_schedule = {};
  std::string schedule = {};        // of the last fit, in words
  std::vector<double> losses = {};  // of the validations so far

  struct ResidentSet {
    std::string id;
    DeviceCopies::Copy copy;
  };
  std::list<ResidentSet> resident = {};  // the last used first
  std::int64_t sets_seen = 0;

  bool is_in_fit = false;
  std::string trained_set = {};  // of `resident`, that of the fit that runs: it stays

  [[nodiscard]] bool is_resident(const Dataset& dataset) const;
  /// Throws, before the device is touched, when the network does not fit the data set's samples or labels.
  void check_fits(const Dataset& dataset, train::Purpose purpose, std::int64_t batch,
                  const NamedMetrics& metrics = {}) const;
  /// Throws as data::check; labels that the loss ignores may be outside the classes.
  void check(const Dataset& dataset) const;
  /// The source for this data set: on the device if it fits, or is there already; else streamed.
  train::Source source_of(const Dataset& dataset, bool may_reside);
  /// The same storage, with averages under the names of the weights that they are of.
  [[nodiscard]] VariablesPtr with_averages(const Graph& graph);
  [[nodiscard]] CompileOptions options_of(train::Purpose purpose) const;
  /// From the cache, or traced, compiled and given what was loaded for it.
  train::StepProgramPtr program(const train::ProgramKey& key, int classes);
  struct EpochPrograms {
    train::StepProgramPtr full, last;  // `last` is null when the batches come out even
  };
  /// The programs of an epoch; `key` but for its plan. An OutOfMemory says the largest batch that fits,
  /// a NotSupported the largest that is possible, where one is.
  EpochPrograms epoch_programs(train::ProgramKey key, const train::EpochPlan& plan, int classes);
  /// The error that is being handled, with what can be done about an epoch whose programs do not fit.
  [[noreturn]] void rethrow_with_advice(train::ProgramKey key, std::int64_t samples, int classes) const;
  /// Averages that are new in the middle of a training, of parameters that were frozen before, begin as these are now.
  void start_averages(const std::map<std::string, TensorSpec>& fresh);
  /// Writes the value of a scalar variable f32 or i32 [1], if there is such a variable.
  void set_scalar(const std::string& name, float value);
  [[nodiscard]] float scalar(const std::string& name) const;
  /// The loss of the epoch so far, of `samples`, by the sums on the device of these terms.
  [[nodiscard]] double loss_so_far(std::span<const LossTerm::Kind> terms, std::int64_t samples) const;
  /// The variable that holds what evaluations and files take for this weight: its average, where there is one.
  [[nodiscard]] std::string evaluated_name(const std::string& weight) const;
  /// What a checkpoint holds: everything but the data and the counters of evaluations.
  [[nodiscard]] io::TensorMap persistent() const;
  /// Weights and running statistics, with averages where evaluations use them, under the weights' names.
  [[nodiscard]] io::TensorMap evaluated_weights() const;
  /// Weights, averages and running statistics.
  [[nodiscard]] io::TensorMap read_weights() const;
  /// Puts weights where they belong, and in place of their averages.
  void write_weights(const io::TensorMap& tensors);
  /// Whether averages of the weights are what counts: from the first update on that was not left out.
  [[nodiscard]] bool averaged() const;
  [[nodiscard]] Metrics evaluate(const Dataset& data, const EvaluateOptions& options);
  /// After an evaluation or prediction with results that are not finite: throws ArgumentError where the first such value
  /// comes of an index outside its table.
  void require_right_indices(const Dataset& data, const train::EpochPlan& plan, const train::ProgramKey& key);
  /// In batches of `batch`, or where there is no memory for those of `least`, to which it then sets `batch`.
  [[nodiscard]] Metrics evaluate_within_memory(const Dataset& data, std::int64_t& batch, std::int64_t least,
                                               const NamedMetrics& metrics);
  /// What a training should have in common with the checkpoint that it goes on from, by name.
  [[nodiscard]] std::map<std::string, std::string> settings() const;
  void save_checkpoint(const std::filesystem::path& path, const io::SaveOptions& how = {}) const;
  void refresh_statistics(const Dataset& data, std::int64_t batch);
  [[nodiscard]] Tensor predict(const Dataset& data, std::int64_t batch);
  /// Warns, at the first fit after a resume, when this schedule is not that of the checkpoint.
  void compare_rates(const optim::Schedule& own_schedule);
  /// Throws FormatError unless the checkpoint has each of these tensors, and no others if `all`.
  static void check_checkpoint(const io::Checkpoint& checkpoint, const std::filesystem::path& path,
                               const std::map<std::string, TensorSpec>& expected, bool all);
  /// Moves these tensors, which were checked, from the waiting checkpoint to the device.
  void take_from_checkpoint(const std::map<std::string, TensorSpec>& names);
};

template <class Function>
decltype(auto) Trainer::with_state(const char* what, Function&& function) const {
  TrainerState& state = *state_;
  const Exclusive::Use use(state.use, [] { return "a Trainer"; });
  return with_host_memory(what, [&]() -> decltype(auto) { return function(state); });
}

namespace train {

/// Throws ArgumentError for an empty data set or a batch below 1; a batch above `samples` means all of them.
[[nodiscard]] EpochPlan plan_epoch(std::int64_t samples, std::int64_t batch, LastBatch last = LastBatch::keep);

/// The samples of an epoch in the order in which they are trained on.
[[nodiscard]] std::vector<std::int32_t> order_of(const EpochPlan& plan, bool shuffle, std::uint64_t seed,
                                                 std::int64_t epoch);

}  // namespace train
}  // namespace concord
