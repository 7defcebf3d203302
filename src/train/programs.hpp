// Programs: the compiled programs of a trainer, made at first use and kept in a bounded cache. Internal to the room.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/train/exchange.hpp"
#include "concord/train/options.hpp"
#include "concord/train/pipeline.hpp"
#include "concord/train/trace.hpp"
#include "concord/train/weights.hpp"

namespace concord::train {

/// A program with the graph that it was made from.
struct StepProgram {
  std::unique_ptr<Graph> graph;
  Values outputs;                     // of the network
  Value loss;                         // empty for Purpose::predict; 0 for a batch that counts nothing
  std::vector<LossTerm::Kind> terms;  // of the loss
  MetricTerms metrics;
  std::optional<Program> program;
  /// With several ranks: `program` is the part before the exchange, and this the part after it.
  std::optional<Program> update = std::nullopt;
  std::shared_ptr<Exchange> exchange = nullptr;
  std::vector<std::size_t> marks = {};            // of the exchange's buckets in `program`
  std::vector<std::size_t> late_marks = {};       // of its late ones in `update`
  std::shared_ptr<StageProgram> stage = nullptr;  // of a network in stages, in place of `program`
  [[nodiscard]] std::vector<Value> results() const { return results_of(outputs, loss); }
  /// Runs a step that does not train, with inputs from `feed`.
  void run(const std::function<void(Program&)>& feed) {
    if (stage) return stage->run(feed);
    feed(*program);
    program->run();
  }
  /// Runs a training step, or, where this rank has no batch for it, only its part of the sums within the step. In the
  /// last step of an update all ranks begin the buckets of the exchange: sums on a device may wait for each other, so
  /// those of the exchange and those within the step have the same order on all ranks.
  void run_training(bool is_last_of_update);
  void run_without_batch(bool is_last_of_update);
  /// The end of the exchange, and the part of the step after it.
  void run_update();
  /// After `run`.
  [[nodiscard]] Tensor read(const Value& value) { return stage ? stage->read(value) : program->read(value); }
};
using StepProgramPtr = std::shared_ptr<StepProgram>;

struct EpochPrograms {
  StepProgramPtr full, last;  // `last` is null when the batches come out even
};

class Programs {
 public:
  /// All must outlive it. The ranks are those of `options`. `pipeline` is null for a network that is not in stages.
  Programs(const Recipe& recipe, const TrainerOptions& options, Weights& weights, PipelineRank* pipeline)
      : recipe_(recipe), options_(options), weights_(weights), pipeline_(pipeline) {}

  /// From the cache, or traced, compiled and given what was loaded for it.
  [[nodiscard]] StepProgramPtr get(const ProgramKey& key);
  /// The programs of an epoch; `key` but for its plan. Where the network is not divided, an OutOfMemory says the
  /// largest batch that fits, a NotSupported the largest that is possible, where one is.
  [[nodiscard]] EpochPrograms of_epoch(ProgramKey key, const EpochPlan& plan);
  /// Throws RankLost if a rank did not come to a sum on the device.
  void require_all_ranks();
  /// Forgets all programs, and what their ranks exchange.
  void clear();
  /// Forgets the programs that read this source.
  void drop(const std::string& source_id);

 private:
  static constexpr std::size_t kMost = 12;

  [[nodiscard]] StepProgramPtr find(const ProgramKey& key);
  [[nodiscard]] StepProgramPtr make(const ProgramKey& key);
  [[nodiscard]] StepProgramPtr make_whole(const ProgramKey& key);
  [[nodiscard]] StepProgramPtr make_stage(const ProgramKey& key);
  void accept(const Traced& traced, Weights::Arrival arrival);
  /// The memory of what the ranks exchange in this step; null if they exchange nothing.
  [[nodiscard]] std::shared_ptr<Exchange> exchange_of(const Graph& graph);
  /// Lets the ranks of a divided network sum within this program.
  void join_parts(Program& program, const Graph& graph);
  [[nodiscard]] StepProgramPtr make_part(const ProgramKey& key);
  [[nodiscard]] CompileOptions options_of(Purpose purpose) const;
  /// The error that is being handled, with what can be done about an epoch whose programs do not fit.
  [[noreturn]] void rethrow_with_advice(ProgramKey key, std::int64_t samples) const;

  const Recipe& recipe_;
  const TrainerOptions& options_;
  Weights& weights_;
  PipelineRank* pipeline_;
  std::list<std::pair<ProgramKey, StepProgramPtr>> programs_;  // the last used first
  std::shared_ptr<Exchange> exchange_;                         // of the last step
  std::optional<StepSums> step_sums_;                          // of a network that is divided within layers
};

}  // namespace concord::train
