// StepNumbers: what is the same for all elements in one step — whether it counts, rates, corrections. Internal to the
// room.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/ops/loss_terms.hpp"
#include "concord/optim/staged.hpp"

namespace concord::optim {

/// Of one part of the parameters.
struct PartNumbers {
  Value lr;
  std::vector<Value> shared;
};

/// Values of rank 0.
struct StepNumbers {
  Value ok;                        // 1 when this run and all before were good
  Value update;                    // 1 when parameters change in this run
  Value restart;                   // 1 when what was gathered is used up; with accumulation only
  Value taken;                     // 1 when this run's gradients count; `ok` unless the loss is scaled
  Value factor;                    // of the gradients; empty with neither clipping by norm nor a scaled loss
  Value follow;                    // how far averages move towards the weights; empty without them
  std::vector<PartNumbers> parts;  // as those of the partition
};

constexpr double kMostScale = 0x1p24;

/// The scale of the loss, of rank 0; empty without.
struct LossScale {
  Value scale, unscale;  // a variable, and its reciprocal
};
[[nodiscard]] LossScale add_loss_scale(Graph& graph, const MinimizeOptions& options);

/// How the runs of an update join, for one term of the loss.
struct Joined {
  LossTerm::Kind kind = LossTerm::Kind::mean;
  Value weight;  // of this run, rank 0; empty: `fixed`
  float fixed = 1;
  Value variable;  // the weights of the runs before; empty for a total, and without accumulation
  Value sum;       // with this run's, or of all ranks; empty for a total and for one run an update
  Value factor;    // from what is gathered, Σ gradient·weight / runs, to the gradient; empty as `sum`
};
[[nodiscard]] std::vector<Joined> join_runs(Graph& graph, const std::vector<LossTerm>& terms,
                                            const MinimizeOptions& options);

/// The same for the runs of all ranks, or of a step in stages. `finite_loss` becomes 0 if the losses of all runs are
/// finite, else NaN.
[[nodiscard]] std::vector<Joined> join_ranks(Graph& graph, const std::vector<LossTerm>& terms,
                                             const MinimizeOptions& options, Value& finite_loss, bool is_staged);

/// The sums of several terms, each times its factor.
[[nodiscard]] Value joined_sum(const std::vector<Value>& sums, const std::vector<Joined>& joined);

/// Runs that an update joins.
[[nodiscard]] inline int runs_of(const MinimizeOptions& options) { return options.accumulate * options.ranks; }
/// Whether this device gathers the gradients of several runs by itself.
[[nodiscard]] inline bool gathers(const MinimizeOptions& options) {
  return options.accumulate > 1 && options.ranks == 1;
}

/// What is known of all gradients of a step.
struct Gradients {
  Value norm;    // empty when it is not needed; still scaled, unless they are accumulated
  Value finite;  // 1 if all elements are finite; empty if this is not checked
  Value bad;  // ranks whose own gradients are not finite, where `finite` leaves some out (exchange_bad); may be empty
  Value factor;  // that they are still to be multiplied by, for both of the above; may be empty
};

/// Adds the numbers, and the counters that they depend on, to the graph. `loss` is finite in good steps.
[[nodiscard]] StepNumbers add_step_numbers(Value loss, const Gradients& gradients, const std::vector<Joined>& joined,
                                           const LossScale& scale, double rate, const Partition& partition,
                                           const MinimizeOptions& options);

/// Adds a variable; where another one has its name already, under a free one (Graph::free_name).
[[nodiscard]] Value state_variable(Graph& graph, Variable variable);

/// What minimize_in_stages wants of a step, and gets from it.
class Staging {
 public:
  Staging(int stages, const StageOf& stage_of) : stages_(stages), stage_of_(stage_of) {}

  /// The gradients of one term of the loss, as far as they are made where the parameters are kept. The parts of other
  /// stages wait for `gather`.
  [[nodiscard]] std::vector<Value> gradients(Value loss, const std::vector<Value>& weights);
  /// Has each stage gather its part of the gradient of parameter i over the runs of an update. `own` is the part of the
  /// home, and `weighed` returns what a run adds for a part. Returns the sum, which the home has in the end.
  [[nodiscard]] Value gather(Value weight, std::size_t i, std::size_t term, Value own,
                             const std::function<Value(Value part)>& weighed);
  /// The norm of all gradients and whether they are finite, from what each stage measures of its own.
  [[nodiscard]] Gradients measure(const std::vector<Value>& weights, const std::vector<Value>& gradients,
                                  bool wants_norm, bool wants_finite);
  /// Adds the assignments by which an update ends with 0 in all that is gathered. Called behind the updates, which read
  /// it, so that it needs no memory.
  void restart();
  [[nodiscard]] StagedStep step(Value ok) { return {ok, std::move(shared_), std::move(measures_)}; }

 private:
  int stages_;
  const StageOf& stage_of_;
  std::vector<std::vector<std::map<int, Value>>> elsewhere_;  // by term and parameter: the parts of other stages
  std::map<int, std::int32_t> readers_;                       // a node of each stage that reads a parameter
  std::vector<Value> gathered_;
  std::vector<SharedGradient> shared_;
  std::vector<Assignment> measures_;
};

// Gradients of several runs or ranks (gather.cpp):
/// Adds a state of a parameter, "optim.<parameter>.<state>".
[[nodiscard]] Value state_of(Value weight, std::string_view state, const TensorSpec& spec, float initial);

/// A parameter's gradient in the making.
struct Gathered {
  Value gradient;                             // but for a factor that all parameters have in common
  std::vector<std::pair<Value, Value>> sums;  // of runs on this device: variables, and what they and this run make
};

/// The part that is known of a run's weight in a joined gradient, over the number of runs. The loss is multiplied with
/// it, not the gradients: the kernels that make them stay what they are.
[[nodiscard]] float share_of_run(const LossTerm& term, const MinimizeOptions& options);
/// What one run adds to a joined gradient: the gradient of one term of the loss, weighted. `unscale` is empty, or the
/// reciprocal of the loss's scale, which may be another in the next run.
[[nodiscard]] Value weighed(Value gradient, const Joined& joined, Value unscale);
/// Adds a variable that gathers the runs of this device, and returns it and its sum with this run.
[[nodiscard]] std::pair<Value, Value> gather_gradient(Value weight, Value gradient, const Joined& joined,
                                                      std::size_t term, Value unscale);

// A step whose parameters are divided among ranks (MinimizeOptions::model_ranks):
/// Replaces the gradients of whole parameters by their sums over the ranks.
void sum_whole_ones(std::vector<Value>& gradients, const std::vector<Value>& weights);
/// The norm of all gradients and whether they are finite, in which each part counts once. `finite_loss` becomes 0 if
/// the losses of all ranks are finite, else NaN.
[[nodiscard]] Gradients measured_over_parts(const std::vector<Value>& weights, const std::vector<Value>& gradients,
                                            const MinimizeOptions& options, Value& finite_loss, bool wants_norm,
                                            bool wants_finite);

/// As minimize, or as minimize_in_stages if `staging` is not null; `options` then has the runs of an update as ranks.
[[nodiscard]] Value minimized(Value loss, const Optimizer& optimizer, const MinimizeOptions& options, Staging* staging);

/// The step word of the random state counts good runs of all ranks, from 0 again after kMostSteps; its words are small
/// enough to be exact as numbers.
void advance_random(Graph& graph, Value ok, int ranks, bool is_early);

}  // namespace concord::optim
