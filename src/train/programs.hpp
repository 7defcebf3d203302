// The programs of a trainer: one for each purpose, source of data and batch size, compiled at first use and kept in a
// bounded cache. Internal to the room.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/loss_terms.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/train/metric.hpp"
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

/// What tells programs of one trainer apart.
struct ProgramKey {
  Purpose purpose = Purpose::train;
  Source source;
  BatchPlan plan;
  int k = 0;              // of the top-k accuracy; 0: no classes
  bool averaged = false;  // averages stand for the trained weights
  NamedMetrics metrics = {};
  std::uint64_t freezes = nn::Module::freezes();
  friend bool operator==(const ProgramKey&, const ProgramKey&) = default;
};

/// Of what terms each metric is.
using MetricTerms = std::map<std::string, std::vector<LossTerm::Kind>>;

/// A program with the graph that it was made from.
struct StepProgram {
  std::unique_ptr<Graph> graph;
  Value output;                       // of the network
  Value loss;                         // empty for Purpose::predict; 0 for a batch that counts nothing
  std::vector<LossTerm::Kind> terms;  // of the loss
  MetricTerms metrics;
  Program program;
};
using StepProgramPtr = std::shared_ptr<StepProgram>;

/// The network and how it is trained: what all programs have in common.
struct Recipe {
  std::shared_ptr<nn::Module> network;
  Loss loss;
  optim::Optimizer optimizer;
  optim::MinimizeOptions minimize;
};

/// The sums that the programs keep on the device of term `term` of the loss, f32 [1]: of the epoch so far, or of an
/// evaluation. A term that is a mean counts by its samples; a weighted one has its weights summed beside it.
[[nodiscard]] std::string loss_sum_name(const std::string& role, std::size_t term);
[[nodiscard]] std::string loss_weight_name(const std::string& role, std::size_t term);
/// What stands for the role in the names of a metric's sums.
[[nodiscard]] std::string role_of_metric(const std::string& name);
inline constexpr const char* kEvalLabels = "eval.labels";  // labels that are not ignored, as a count
// Counts, f32 [2] (see Hits).
inline constexpr const char* kEvalFirst = "eval.first";     // labels that came first
inline constexpr const char* kEvalAmongK = "eval.among_k";  // or among the k first

/// A traced step that is not compiled yet.
struct Traced {
  std::unique_ptr<Graph> graph;
  Value output, loss;
  std::vector<LossTerm::Kind> terms;
  MetricTerms metrics;
  std::optional<std::int32_t> ignored;  // the label that the loss leaves out
  std::vector<VariablePtr> weights;     // parameters and running statistics of the network
};
/// Builds the graph of a step. No device is touched. Throws ShapeError naming the layer that does not fit,
/// ArgumentError when `classes` labels cannot be told by the network's outputs; either naming a metric that is wrong.
[[nodiscard]] Traced trace(const Recipe& recipe, const ProgramKey& key, int classes);

/// Throws ArgumentError for a metric without a function, and for a name that is empty or not UTF-8.
void check_metrics(const NamedMetrics& metrics);

/// The last few programs used.
class ProgramCache {
 public:
  [[nodiscard]] StepProgramPtr find(const ProgramKey& key);
  void add(const ProgramKey& key, StepProgramPtr program);
  void drop(const ProgramKey& key);
  /// Forgets the programs that read this source.
  void drop(const std::string& source_id);

 private:
  static constexpr std::size_t kMost = 12;
  std::list<std::pair<ProgramKey, StepProgramPtr>> programs_;  // the last used first
};

}  // namespace concord::train
