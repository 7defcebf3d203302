// minimize: extends a graph that computes a loss to one that trains: gradients, clipping, updates and counters in one
// program. The trainer and a user's training loops use it.
#pragma once

#include <string>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/optim/groups.hpp"
#include "concord/optim/norm.hpp"
#include "concord/optim/optimizer.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// Gradient clipping; 0 means none. Clipping by norm comes before clipping by value.
struct Clip {
  double norm = 0;   // the largest Euclidean norm of all gradients together; larger ones are scaled down
  double value = 0;  // clamps each element to [-value, value]
};

struct MinimizeOptions {
  Clip clip = {};
  /// Treats a step with a NaN or infinite gradient as failed, like one with such a loss. Without it, such gradients are
  /// applied.
  bool check_gradients = true;
  /// Parameters with other settings, or frozen ones.
  std::vector<Group> groups = {};
  /// Number of runs per update. An update uses the gradient of the loss of all their batches as one batch (see
  /// concord::Loss): sums and weights are collected in the variables "optim.<parameter>.accumulated" and
  /// kGatheredWeight, and divided at the update. A run whose labels are all ignored does not count; an update with only
  /// such runs is skipped. If the host sets kFlush, the next run makes the update early.
  int accumulate = 1;
  /// Above 1: the step of one of so many ranks, whose gradients are summed by the host in the middle of the step
  /// (Graph::exchange). An update joins `accumulate` runs of each rank, as `accumulate` joins runs: with one run each,
  /// N ranks have the bits of `accumulate` N on one device. The random state advances by `ranks` each run, so a rank
  /// adds its number to the step word at the start.
  int ranks = 1;
  /// Above 1: each of so many ranks runs this step with the same batch and its part of the parameters
  /// (Variable::shard), and the graph sums what they make (all_reduce). Then the gradients of whole parameters are
  /// summed over the ranks, and the norm and the checks are those of all parts. Every rank gets the same sums;
  /// the norm of unlike devices may differ by rounding. Not with `ranks`.
  int model_ranks = 1, model_rank = 0;
  /// Above 0: adds a variable "ema.<parameter>" for each trained parameter, ema ← decay·ema + (1 − decay)·parameter,
  /// which starts as the result of the first update (Polyak and Juditsky, 1992; torch.optim.swa_utils). Running
  /// statistics, which layers assign, are averaged likewise (AveragedModel with use_buffers); counts are copied.
  double ema_decay = 0;
  /// Above 0: loss scaling, so that small gradients are not lost in fp16 (Micikevicius et al., "Mixed Precision
  /// Training", 2018). The loss is multiplied by the variable "optim.scale", whose initial value this is, and the
  /// gradients are divided by it. A step with gradients that are not finite changes no parameter and halves the scale;
  /// kScaleInterval good steps double it. If the scale is already 1, such a step has failed.
  double loss_scale = 0;
  /// Gives this program its own counters and learning rate: "optim.<name>.lr" instead of "optim.lr", and so on. Needed
  /// if programs that share Variables train different parameters, such as the two networks of a GAN. The states of
  /// parameters keep their names.
  std::string name = {};
  /// The weight of this program's batch among the runs of an update, for a loss that is a mean over samples. If
  /// programs with other batch sizes take part, set it to the number of samples over that of the usual batch.
  double weight = 1;
};

/// Names of what a step of several ranks exchanges, beside "exchange.<parameter>".
inline constexpr const char* kExchangedNumbers = "exchange.numbers";  // f32: 0 or NaN, and the divisors of the losses
inline constexpr const char* kExchangedBad = "optim.exchanged_bad";   // f32 [1], as in optim/exchange.hpp

/// The initial loss scale for a precision: 65536 for fp16, else 0 (no scaling).
[[nodiscard]] double loss_scale_for(Precision precision);

/// Names of the scalar variables that `minimize` adds.
inline constexpr const char* kRate = "optim.lr";    // f32, written by the host when the schedule changes it
inline constexpr const char* kStep = "optim.step";  // i32, number of updates, at most kMostSteps
/// The device stops counting here, because formulas count in f32. Bias corrections no longer change after so many
/// steps.
inline constexpr std::int32_t kMostSteps = 1 << 24;
inline constexpr const char* kOk = "optim.ok";                   // f32, 1; 0 after the first loss that is not finite
inline constexpr const char* kScale = "optim.scale";             // f32, only with `loss_scale`
inline constexpr const char* kScaleSteps = "optim.scale_steps";  // i32, good runs since the last change of the scale
inline constexpr int kScaleInterval = 2000;
// Only with `accumulate`:
inline constexpr const char* kGathered = "optim.gathered";  // i32, runs since the last update
/// f32, the divisor of the losses since the last update.
inline constexpr const char* kGatheredWeight = "optim.gathered_weight";
/// f32, set to 1 by the host before the last run of a group.
inline constexpr const char* kFlush = "optim.flush";

/// A counter's name with MinimizeOptions::name: "optim.lr" → "optim.<name>.lr".
[[nodiscard]] std::string counter_name(const char* counter, const std::string& name);

/// The name of the average of a parameter, unless the network has a parameter with that name.
[[nodiscard]] inline std::string ema_name(const std::string& parameter) { return "ema." + parameter; }
/// The average of this parameter or running statistic with MinimizeOptions::ema_decay. Its name is `ema_name`, or
/// "ema.<parameter>'" if a parameter of a module has that name.
[[nodiscard]] Variable average_of(const Graph& graph, const Variable& parameter);

/// Adds to the graph of `loss` (one element) the gradients of all its trainable variables, and their updates by
/// `optimizer`. States become variables "optim.<parameter>.<state>". The random state advances if the graph uses it.
/// Returns the value of `optim.ok` after this step. It is 0 if the loss or a gradient is not finite. Then nothing is
/// assigned: every variable, including those of batch norm, keeps its value from before the first bad step, bit for
/// bit. require_applied (optim/failure.hpp) finds the cause. A batch whose labels are all ignored is not a failure: it
/// changes no parameter and no state of the optimizer.
/// Call it last: later assignments are not held back by a failed step.
Value minimize(Value loss, const Optimizer& optimizer, const MinimizeOptions& options = {});

}  // namespace optim
}  // namespace concord
