// minimize: turns a graph that computes a loss into one that trains: gradients, clipping, updates, counters — all in
// the same program. Used by the trainer and by loops of a user's own.
#pragma once

#include <string>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/optim/groups.hpp"
#include "concord/optim/norm.hpp"
#include "concord/optim/optimizer.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// Gradient clipping; 0 is off. By value comes after by norm where both are given.
struct Clip {
  double norm = 0;   // all gradients together are scaled to at most this Euclidean norm
  double value = 0;  // every element is brought into [-value, value]
};

struct MinimizeOptions {
  Clip clip = {};
  /// A step whose gradients are not finite has failed as one with such a loss has. Without, they are applied.
  bool check_gradients = true;
  /// Parameters trained in another way than the rest, or not at all.
  std::vector<Group> groups = {};
  /// Runs of the program an update. What is clipped and used is the gradient of the loss of their batches as one (see
  /// concord::Loss): sums and weights are gathered, in variables "optim.<parameter>.accumulated" and kGatheredWeight,
  /// and divided at the update. Runs whose labels are all ignored count nothing; where all runs of an update are such,
  /// it is left out. An update comes early in a run for which the host has set kFlush.
  int accumulate = 1;
  /// Above 0: a variable "ema.<parameter>" follows each trained parameter, ema ← decay·ema + (1 − decay)·parameter,
  /// from the first update's result on (Polyak and Juditsky, 1992; torch.optim.swa_utils).
  double ema_decay = 0;
  /// Above 0: the loss is multiplied by a variable "optim.scale", this at first, before gradients are taken, and they
  /// are divided by it afterwards, so that small ones are not lost in fp16 products (Micikevicius et al., "Mixed
  /// Precision Training", 2018). A step whose gradients are not finite changes no parameter and halves the scale; after
  /// kScaleInterval good ones it doubles. Not finite at scale 1, such a step has failed as one with a bad loss has.
  double loss_scale = 0;
  /// Where programs that share Variables train different parameters (the two sides of a GAN), each needs counters and a
  /// rate of its own: "optim.<name>.lr" in place of "optim.lr", and so on. States of parameters keep their names.
  std::string name = {};
  /// What a loss that is a mean over samples counts with among the runs of an update: their number, where programs with
  /// batches of other sizes take part.
  double weight = 1;
};

/// The first scale of the loss that products of this precision want: 65536 for fp16, else none.
[[nodiscard]] double loss_scale_for(Precision precision);

/// Names of the scalar variables that `minimize` adds.
inline constexpr const char* kRate = "optim.lr";    // f32, written by the host when a schedule changes it
inline constexpr const char* kStep = "optim.step";  // i32, updates done, at most kMostSteps
/// Where the device stops counting, since formulas count in f32: corrections of so late a step change no more.
inline constexpr std::int32_t kMostSteps = 1 << 24;
inline constexpr const char* kOk = "optim.ok";        // f32, 1 until the first loss that is not finite, then 0 for good
inline constexpr const char* kScale = "optim.scale";  // f32, with `loss_scale` only
inline constexpr const char* kScaleSteps = "optim.scale_steps";  // i32, good runs since it changed
inline constexpr int kScaleInterval = 2000;
// With `accumulate` only:
inline constexpr const char* kGathered = "optim.gathered";               // i32, runs since the last update
inline constexpr const char* kGatheredWeight = "optim.gathered_weight";  // f32, what their losses have been divided by
inline constexpr const char* kFlush = "optim.flush";  // f32, set to 1 by the host before the last run of a group

/// One of them with MinimizeOptions::name: "optim.lr" → "optim.<name>.lr".
[[nodiscard]] std::string counter_name(const char* counter, const std::string& name);

/// The name of the average of a parameter, unless the network has a parameter of that name.
[[nodiscard]] inline std::string ema_name(const std::string& parameter) { return "ema." + parameter; }
/// The variable that follows this parameter of the graph with MinimizeOptions::ema_decay: named `ema_name`, or where a
/// module's parameter has that name, "ema.<parameter>'".
[[nodiscard]] Variable average_of(const Graph& graph, const Variable& parameter);

/// Adds to the graph of `loss` (one element) the gradients of all its trainable variables and their updates by
/// `optimizer`; the states become variables "optim.<parameter>.<state>". The random state advances if it is used.
/// Returns the value of `optim.ok` after this step. When it is 0, for a loss or a gradient that is not finite, nothing
/// is assigned: every variable, those of batch norm included, keeps what it held before the first bad step, to the bit.
/// require_applied (optim/failure.hpp) tells what went wrong. A batch whose labels are all ignored is no failure: it
/// changes no parameter and none of the optimizer's state.
/// To be called last, after everything else has been assigned; what is assigned later is not held back.
Value minimize(Value loss, const Optimizer& optimizer, const MinimizeOptions& options = {});

}  // namespace optim
}  // namespace concord
