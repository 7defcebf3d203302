// compare: the same training on several devices, side by side. Says how far their losses part, how fast each is, and
// which operator, if any, computes something else than the reference does on the same inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/compare/cases/operator_case.hpp"
#include "concord/compare/operator_times.hpp"
#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/device/device.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/groups.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/optim/optimizer.hpp"

namespace CONCORD_PUBLIC concord {

/// What the results of operators are held against. Inputs are those of the first device in either case.
enum class Reference : std::uint8_t {
  device,   // the first device, each operator by itself
  float64,  // the host in double precision (reference64/evaluate.hpp), for the first device as for the others
};

struct CompareOptions {
  std::int64_t steps = 100;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
  std::vector<optim::Group> groups = {};  // of optim::MinimizeOptions
  optim::Clip clip = {};
  double seconds = 1;                     // a device's step is timed at least this long
  Precision precision = Precision::fp32;  // of products, on every device
  Reference reference = Reference::device;
  std::int64_t check_every = 0;  // steps between checks of what a step runs; 0: none between the first and the last
  bool drift = false;            // how far weights part, beside two runs of the first device that begin one ULP away
  bool speed = false;            // each operator's time, and what each device can do (measure_speed)
  std::string case_node = {};    // the node to keep a case of; empty: the first that diverges
};

/// "forward", "gradient", "update".
[[nodiscard]] std::string_view name_of(Pass pass);

/// How an operator was run: by itself, or in the kernel that fusion makes of it and others.
enum class Form : std::uint8_t { alone, fused };
/// "by itself", "as fused".
[[nodiscard]] std::string_view name_of(Form form);

/// An element counts, where its own error is told, as at least so many times what rounding explains in fp32: a smaller
/// one has less than eight bits that rounding leaves certain, so that ULPs of it would count noise. What is within that
/// tolerance is at most a 256th, and 65536 ULPs, off.
inline constexpr double kLeastOfTolerance = 256;

/// How far one result of one operator is from the reference on the same inputs. Of a device's results of one node that
/// one which is farthest for its tolerance.
struct Deviation {
  std::string node, op, kernel, value, shapes;
  Pass pass = Pass::forward;
  double error = 0;       // largest absolute difference
  double tolerance = 0;   // what rounding explains; infinite for what is not compared (tolerance.hpp)
  std::int64_t step = 0;  // steps done before
  Form form = Form::alone;
  /// Of the elements each by itself, those smaller than kLeastOfTolerance taken for that large: the largest error over
  /// the reference, and over the distance between neighbouring f32 numbers there. Infinite where `error` is.
  double largest_relative = 0, largest_ulps = 0;
  /// Index of that of the most ULPs; empty where nothing differs, and of a scalar.
  std::vector<std::int64_t> worst_element = {};
  [[nodiscard]] bool diverges() const { return !(error <= tolerance); }
  /// Of the tolerance; 0 where nothing differs, infinite where nothing may and something does.
  [[nodiscard]] double share() const;
  /// " at [0, 3]", or nothing where there is no index.
  [[nodiscard]] std::string place() const;
};

/// How far the trained weights of a run are from those of the first device: the norm of the difference over theirs.
struct WeightDistance {
  std::int64_t step = 0;  // steps done
  double distance = 0;
};

/// Which other numbers a step made when it was run again.
enum class Unlike : std::uint8_t {
  none,
  first_run,   // than in the first run: its kernels, or their order, do not repeat
  one_by_one,  // than its kernels one by one: their order, or the memory that they share, is wrong
};

/// A loss that rounding may not explain.
struct SuspiciousLoss {
  std::int64_t step = 0;  // whose loss it is, from 1
  double deviation = 0;   // from the first device's, relative; infinite where it is not finite
  double explained = 0;   // the largest deviation, until that step, of the runs that began one ULP away
};

/// What running a device's training again has shown, where a loss was not finite or parted further from the first
/// device's than rounding explains. An operator that it showed to be wrong is DeviceRun::first_deviation.
struct SecondRun {
  SuspiciousLoss loss = {};
  std::int64_t checked_steps = 0;
  Unlike unlike = Unlike::none;
  std::int64_t unlike_step = 0;
  NonFiniteReport non_finite = {};  // the first value that is not finite, and in which step
  std::int64_t non_finite_step = 0;
};

/// What one device did.
struct DeviceRun {
  DeviceInfo device;
  std::vector<float> losses;                     // one a step
  double first_step_ms = 0;                      // compile, kernel builds and the first step
  double median_ms = 0, min_ms = 0, max_ms = 0;  // of a step
  double samples_per_second = 0;
  std::optional<double> joules_a_step = {};  // where somebody tells (energy/meter.hpp): who, and of what
  std::string energy_source = {};
  std::uint64_t memory_bytes = 0;     // of the device, taken by weights, optimizer state and the step: all at once
  double largest_loss_deviation = 0;  // relative to the reference device, over the run
  std::int64_t largest_at_step = 0;
  std::int64_t checked_values = 0;
  std::optional<Deviation> first_deviation;
  std::optional<SecondRun> second_run = {};
  std::vector<Deviation> operators;                   // each node checked, in execution order: by itself, then as fused
  std::vector<std::string> unreferenced = {};         // operators that were not checked: there is no float64 reference
  std::vector<WeightDistance> weight_distances = {};  // with CompareOptions::drift
  std::vector<OperatorTime> times = {};               // with CompareOptions::speed: a row for each operator and kernel
  std::optional<DeviceSpeed> speed;
  std::optional<OperatorCase> kept_case;  // of first_deviation, or of CompareOptions::case_node
};

/// What the checks cost, on all devices together: seconds of each.
struct CheckCost {
  std::vector<double> all_seconds = {};   // a check of each operator by itself and as fused
  std::vector<double> step_seconds = {};  // a step of every device together with the check of what it runs
  double compile_seconds = 0;             // of the programs that are checked
};

/// A run of the first device whose first weights were each moved to a neighbouring number: what rounding alone does.
struct NudgedRun {
  std::vector<float> losses;
  double largest_loss_deviation = 0;
  std::vector<WeightDistance> weight_distances;
};

/// What the JSON has of each device: losses, times of a step and the first deviation, or every operator as well.
enum class JsonDetail : std::uint8_t { devices, operators };

struct Comparison {
  std::string network;
  CompareOptions options;
  std::vector<DeviceRun> runs;  // the first is the reference
  std::vector<NudgedRun> nudged = {};
  CheckCost check_cost = {};
  /// The median of these seconds, in steps of the slowest device.
  [[nodiscard]] double in_slowest_steps(std::span<const double> seconds) const;
  /// No operator left its tolerance on any device, every device behind the first, or that one alone, was checked, every
  /// loss is finite, and steps that were run again made the same.
  [[nodiscard]] bool agrees() const { return disagreement().empty(); }
  /// Why not: "node conv1 on opencl:0 leaves its tolerance", "the loss of step 3 on cpu is not finite"; of the first
  /// device where that is so. Empty where they agree.
  [[nodiscard]] std::string disagreement() const;
  /// The same of one device.
  [[nodiscard]] std::string disagreement(std::size_t place) const;
  /// What the second run of a device showed, in a sentence; empty where there was none, or nothing is left to say.
  [[nodiscard]] std::string second_run_text(std::size_t place) const;
  /// "the devices agree", or of one device "nothing is wrong"; "the devices do not agree", "something is wrong".
  [[nodiscard]] std::string_view verdict() const;
  /// Results of operators that were held against the reference, on all devices.
  [[nodiscard]] std::int64_t checked_values() const;
  /// The table that `concord compare` prints.
  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::string json(JsonDetail detail = JsonDetail::devices) const;
  /// One page for a browser, with nothing to load from elsewhere: devices, losses, every operator's error, times,
  /// rooflines.
  [[nodiscard]] std::string html() const;
};

/// Trains `network` on every device from the same weights on the same batches, `options.steps` steps each. Before the
/// first and after the last step every operator of the training step is run once more on each device with the inputs
/// that it had on devices[0], by itself and as fusion makes it, and its results are held against the tolerance of its
/// kind (see tolerance.hpp); with `options.check_every`, in every so many steps what the step runs, too. The losses
/// of correct devices part too, as rounding is amplified from step to step; `options.drift` shows how much of it
/// rounding explains. Where a loss is not finite or parts by more than 100 times as much, the device's training is run
/// again until there and its steps are checked on its own values (SecondRun). Throws ArgumentError for no device, no
/// step, batch 0 or a case_node that is no operator's, and what data::check() throws.
[[nodiscard]] Comparison compare(nn::Module& network, const std::string& name, const Loss& loss,
                                 const optim::Optimizer& optimizer, const Dataset& dataset,
                                 std::span<const DevicePtr> devices, const CompareOptions& options = {});

}  // namespace concord
