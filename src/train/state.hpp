// What a Trainer holds, by what owns it, and what is done with all of it. Internal to the room.
#pragma once

#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/exclusive.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/train/best_epoch.hpp"
#include "concord/train/place.hpp"
#include "concord/train/programs.hpp"
#include "concord/train/ranks.hpp"
#include "concord/train/resident_sets.hpp"
#include "concord/train/resumed_rates.hpp"
#include "concord/train/trainer.hpp"
#include "concord/train/weights.hpp"

namespace concord {

struct TrainerState {
  TrainerState(train::Recipe recipe_of_all, DevicePtr on, TrainerOptions with)
      : recipe(std::move(recipe_of_all)),
        device(std::move(on)),
        options(std::move(with)),
        pipeline(options.pipeline.is_on()
                     ? std::optional<train::PipelineRank>(std::in_place, options.group, device->info().memory)
                     : std::nullopt) {
    at.seed = options.seed;
    at.accumulate = ranks.update();
  }
  TrainerState(const TrainerState&) = delete;
  TrainerState& operator=(const TrainerState&) = delete;
  ~TrainerState() = default;

  // survivors.cpp changes what depends on the ranks.
  train::Recipe recipe;
  const DevicePtr device;
  TrainerOptions options;
  train::Ranks ranks = train::ranks_of(options, recipe.minimize.accumulate);
  const int parts_of_batch = ranks.are_split() ? ranks.size() : 1;  // also when fewer ranks are left
  std::optional<train::PipelineRank> pipeline;                      // of a network in stages
  train::Weights weights{device, options};
  train::Programs programs{recipe, options, weights, pipeline ? &*pipeline : nullptr};
  train::ResidentSets resident{weights.variables(), options.resident_fraction, programs};
  /// Whether no rank has the whole network.
  [[nodiscard]] bool is_divided() const { return pipeline || options.model_parallel.is_on(); }
  train::Place at;
  std::optional<train::BestEpoch> best;  // with early stopping, until a fit is finished
  train::ResumedRates resumed;
  std::string schedule;  // of the last fit, in words
  bool is_in_fit = false;
  Exclusive use;
};

template <class Function>
decltype(auto) Trainer::with_state(const char* what, Function&& function) const {
  TrainerState& state = *state_;
  const Exclusive::Use use(state.use, [] { return "a Trainer"; });
  return with_host_memory(what, [&]() -> decltype(auto) { return function(state); });
}

namespace train {

/// Weights::evaluated and Weights::persistent of the whole network, on rank 0. Where each rank has a whole network,
/// those of this device. All ranks call it together. Throws RankLost.
[[nodiscard]] io::TensorMap gather_evaluated(const TrainerState& state);
[[nodiscard]] io::TensorMap gather_persistent(const TrainerState& state);
/// BestEpoch::weights likewise.
[[nodiscard]] io::TensorMap gather_best(const TrainerState& state);

/// Lets rank 0 write a file, and waits for it. If that rank is lost and others may go on, the first of those writes it;
/// in a fit RankLost is thrown, which goes on. In a divided network, an IoError of rank 0 is one on all ranks, so that
/// all try again.
void write_on_first_rank(TrainerState& state, const std::function<void()>& write);
/// That a fit runs, for as long as it does.
class InFit {
 public:
  /// Throws ArgumentError where one does already.
  explicit InFit(TrainerState& state) : state_(state) {
    CONCORD_CHECK(!state.is_in_fit, ArgumentError,
                  "fit is called within a fit of the same Trainer, perhaps in a callback; call it after that one "
                  "returns (TrainingControl::stop ends it)");
    state.is_in_fit = true;
  }
  InFit(const InFit&) = delete;
  InFit& operator=(const InFit&) = delete;
  ~InFit() {
    state_.is_in_fit = false;
    state_.resident.keep({});
  }

 private:
  TrainerState& state_;
};

/// Rank 0 writes, or in a divided network all together.
void save_checkpoint(TrainerState& state, const std::filesystem::path& path, const io::SaveOptions& options = {});
/// As Trainer::resume. A file that does not fit changes nothing.
void resume(TrainerState& state, const std::filesystem::path& path);

[[nodiscard]] Metrics evaluate(TrainerState& state, const Samples& data, const EvaluateOptions& options);
/// In batches of `batch`, not of options.batch, or where there is no memory for those of `least`, to which it then sets
/// `batch`.
[[nodiscard]] Metrics evaluate_within_memory(TrainerState& state, const Samples& data, std::int64_t& batch,
                                             std::int64_t least, const EvaluateOptions& options);

}  // namespace train
}  // namespace concord
