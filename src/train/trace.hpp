// The graphs of a trainer's programs: one for each purpose, source of data and batch size. Internal to the library.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/nn/module.hpp"
#include "concord/ops/loss_terms.hpp"
#include "concord/optim/staged.hpp"
#include "concord/train/metric.hpp"
#include "concord/train/objective.hpp"
#include "concord/train/options.hpp"
#include "concord/train/source.hpp"

namespace concord::train {

enum class Purpose : std::uint8_t {
  train,
  evaluate,
  predict,
  statistics  // running statistics become their mean over batches, by the weights of evaluations
};

/// Whose place in an epoch and order of samples it reads: "train", "eval", … (see cursor_name and order_name).
[[nodiscard]] std::string role_of(Purpose purpose);

/// The cursor of the last update, to which that of a rank goes back after a failed one: i32 [1].
inline constexpr const char* kUpdatedCursor = "train.updated_cursor";
/// What each rank adds to the sums of the loss: f32, for each term its sum, and its weight if it is weighted.
inline constexpr const char* kExchangedCounts = "exchange.counts";
class StagePlan;

/// The properties in which programs of one trainer differ.
struct ProgramKey {
  Purpose purpose = Purpose::train;
  Source source;
  BatchPlan plan;
  int k = 0;              // of the top-k accuracy; 0: no classes
  bool averaged = false;  // averages stand for the trained weights
  NamedMetrics metrics = {};
  bool mixes = false;  // FitOptions::mixing
  friend bool operator==(const ProgramKey&, const ProgramKey&) = default;
};

/// Of what terms each metric is.
using MetricTerms = std::map<std::string, std::vector<LossTerm::Kind>>;

/// The network and how it is trained: what all programs have in common.
struct Recipe {
  std::shared_ptr<nn::Module> network;
  Objective objective;
  optim::Optimizer optimizer;
  optim::MinimizeOptions minimize;
  /// Of batch norm, over minimize.ranks (TrainerOptions::sync_batch_norm).
  bool synchronises_statistics = false;
  int rank = 0;
  ModelParallel model_parallel = {};
  Objective evaluation = {};  // TrainerOptions::evaluation

  [[nodiscard]] const Objective& objective_for(Purpose purpose) const {
    return purpose == Purpose::train || !evaluation ? objective : evaluation;
  }
};

[[nodiscard]] std::vector<Value> results_of(const Values& outputs, Value loss);

/// A traced step that is not compiled yet.
struct Traced {
  std::unique_ptr<Graph> graph;
  Values outputs;  // of the network
  Value loss;      // empty for Purpose::predict and statistics
  std::vector<LossTerm::Kind> terms;
  MetricTerms metrics;
  std::vector<std::optional<std::int32_t>> ignored;  // the label that the loss leaves out, for each column of labels
  std::vector<VariablePtr> weights;                  // parameters and running statistics of the network
  Value cursor = {};
  // Of a network in stages:
  std::vector<std::int32_t> begins = {};  // the first nodes of stages 1, 2, …
  optim::StagedStep staged = {};          // of one that trains
  /// What the program computes: the loss, else the outputs.
  [[nodiscard]] std::vector<Value> results() const { return results_of(outputs, loss); }
};
/// Builds the graph of a step without touching a device; with a plan, of a step in stages. Throws ShapeError with the
/// layer that does not fit, ArgumentError if the network has too few outputs for the classes of the labels. Both errors
/// name a wrong metric.
[[nodiscard]] Traced trace(const Recipe& recipe, const ProgramKey& key, const StagePlan* plan = nullptr);

/// Throws as data::check_outputs if an output has no score for each class of its labels, for every loss of the
/// objective.
void check_classes(const Objective& objective, const Values& outputs, const Values& labels, const Source& source);
/// The label that the loss of each column leaves out. Called after the loss was traced.
[[nodiscard]] std::vector<std::optional<std::int32_t>> ignored_labels(Graph& graph, const Values& labels);
/// Throws ArgumentError for a metric without a function, and for a name that is empty or not UTF-8.
void check_metrics(const NamedMetrics& metrics);

}  // namespace concord::train
