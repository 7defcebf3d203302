// compare: runs the same training on several devices. Reports how far their losses deviate, how fast each device is,
// and which operators deviate from the reference on the same inputs.
#pragma once

#include <cstdint>
#include <filesystem>
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
#include "concord/io/checkpoint.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/groups.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/optim/optimizer.hpp"
#include "concord/train/objective.hpp"

namespace CONCORD_PUBLIC concord {

/// The reference for the results of operators. In both cases each operator gets the inputs that it had on the first
/// device.
enum class Reference : std::uint8_t {
  device,  // the first device, with unfused operators
  /// The host in double precision. It checks the first device too.
  float64,
};

struct CompareOptions {
  std::int64_t steps = 100;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
  std::vector<optim::Group> groups = {};  // of optim::MinimizeOptions
  optim::Clip clip = {};
  double seconds = 1;                     // the shortest time to measure the step of a device
  Precision precision = Precision::fp32;  // of matrix multiplications, on every device
  Reference reference = Reference::device;
  /// Steps between checks of the operators. 0: checks only before the first and after the last step.
  std::int64_t check_every = 0;
  /// Reports the distance of the weights, and makes two runs of the first device from weights moved by one ULP.
  bool drift = false;
  bool speed = false;          // measures each operator and the speed of each device (measure_speed)
  std::string case_node = {};  // the node to save as a case; empty: the first that diverges
  /// A file of weights to start with, read as weights::load does; empty: random weights of `seed`.
  std::filesystem::path weights = {};
  io::LoadOptions load = {};  // differences that this file may have
};

/// "forward", "gradient", "update".
[[nodiscard]] std::string_view name_of(Pass pass);

/// How an operator ran: unfused, or in the kernel that fusion makes of it and others.
enum class Form : std::uint8_t { alone, fused };
/// "unfused", "fused".
[[nodiscard]] std::string_view name_of(Form form);

/// Lower limit of an element's size in Deviation::largest_relative and largest_ulps, in units of the fp32 tolerance.
/// Rounding leaves a smaller element less than eight reliable bits, so its error in ULPs would be noise. With this
/// limit an error within the tolerance is at most 1/256 of the element and at most 65536 ULPs.
inline constexpr double kLeastOfTolerance = 256;

/// The error of one result of an operator against the reference on the same inputs. If a node has several results, this
/// is the one with the largest error relative to its tolerance.
struct Deviation {
  std::string node, op, kernel, value, shapes;
  Pass pass = Pass::forward;
  double error = 0;       // largest absolute difference
  double tolerance = 0;   // largest error by rounding; infinite if the result is not compared
  std::int64_t step = 0;  // steps done before the check
  Form form = Form::alone;
  /// The largest error of an element relative to the reference, and in ULPs of the reference. Elements below
  /// kLeastOfTolerance count as that large. Infinite if `error` is.
  double largest_relative = 0, largest_ulps = 0;
  /// The index of the element with the largest error in ULPs. Empty for a scalar, or if no element differs.
  std::vector<std::int64_t> worst_element = {};
  [[nodiscard]] bool diverges() const { return !(error <= tolerance); }
  /// error/tolerance. 0 if nothing differs; infinite if the tolerance is 0 and something differs.
  [[nodiscard]] double share() const;
  /// " at [0, 3]", or nothing if there is no index.
  [[nodiscard]] std::string place() const;
};

/// The distance of a run's weights from those of the first device: the norm of the difference, divided by the norm of
/// the first device's weights.
struct WeightDistance {
  std::int64_t step = 0;  // steps done
  double distance = 0;
};

/// How the numbers of a repeated step differ.
enum class Mismatch : std::uint8_t {
  none,
  first_run,  // from the first run: its kernels, or their order, are not deterministic
  /// From the same kernels run one by one: their order, or the memory that they share, is wrong.
  one_by_one,
};

/// A loss that deviates more than rounding can explain.
struct SuspiciousLoss {
  std::int64_t step = 0;  // the step of the loss, from 1
  double deviation = 0;   // from the loss of the first device, relative; infinite if the loss is not finite
  double explained = 0;   // the largest deviation, up to that step, of the runs from weights moved by one ULP
};

/// The result of the re-run check of a device. It happens if a loss is not finite, or deviates from that of the first
/// device more than rounding can explain. If it finds a wrong operator, DeviceRun::first_deviation describes it.
struct RerunCheck {
  SuspiciousLoss loss = {};
  std::int64_t checked_steps = 0;
  Mismatch mismatch = Mismatch::none;
  std::int64_t mismatch_step = 0;
  NonFiniteReport non_finite = {};  // the first value that is not finite; non_finite_step is its step
  std::int64_t non_finite_step = 0;
};

/// The results of one device.
struct DeviceRun {
  DeviceInfo device;
  std::vector<float> losses;                     // one for each step
  double first_step_ms = 0;                      // compile, kernel builds and the first step
  double median_ms = 0, min_ms = 0, max_ms = 0;  // of a step
  double samples_per_second = 0;
  /// Empty if no meter reports energy (energy/meter.hpp). `energy_source` names the meter.
  std::optional<double> joules_a_step = {};
  std::string energy_source = {};
  /// Peak device memory of weights, optimizer state and the training step together.
  std::uint64_t memory_bytes = 0;
  double largest_loss_deviation = 0;  // relative to the reference device, over all steps
  std::int64_t largest_at_step = 0;
  std::int64_t checked_values = 0;
  std::optional<Deviation> first_deviation;
  std::optional<RerunCheck> rerun_check = {};
  /// Each checked node in execution order: first unfused, then as fused.
  std::vector<Deviation> operators;
  std::vector<std::string> unreferenced = {};         // operators without a float64 reference; they were not checked
  std::vector<WeightDistance> weight_distances = {};  // with CompareOptions::drift
  std::vector<OperatorTime> times = {};               // with CompareOptions::speed: a row for each operator and kernel
  std::optional<DeviceSpeed> speed;
  std::optional<OperatorCase> kept_case;  // of first_deviation, or of CompareOptions::case_node
};

/// The time of the checks on all devices together, in seconds.
struct CheckCost {
  std::vector<double> all_seconds = {};   // each check of all operators, unfused and as fused
  std::vector<double> step_seconds = {};  // each step of all devices together with its check
  double compile_seconds = 0;             // compiling the programs of the checks
};

/// A run of the first device from initial weights that were each moved by one ULP. It shows the effect of rounding
/// alone.
struct PerturbedRun {
  std::vector<float> losses;
  double largest_loss_deviation = 0;
  std::vector<WeightDistance> weight_distances;
};

/// What the JSON contains for each device. devices: losses, times of a step and the first deviation. operators: also
/// each operator.
enum class JsonDetail : std::uint8_t { devices, operators };

struct Comparison {
  std::string network;
  CompareOptions options;
  std::vector<DeviceRun> runs;  // the first is the reference
  std::vector<PerturbedRun> perturbed = {};
  CheckCost check_cost = {};
  /// The median of `seconds`, divided by the step time of the slowest device.
  [[nodiscard]] double in_slowest_steps(std::span<const double> seconds) const;
  /// Returns whether the devices agree: no operator exceeds its tolerance on any device, every device except the
  /// reference was checked, every loss is finite, and the re-run checks gave equal numbers.
  [[nodiscard]] bool agrees() const { return disagreement().empty(); }
  /// The first reason why the devices do not agree: "node conv1 on opencl:0 exceeds its tolerance", "the loss of step 3
  /// on cpu is not finite". Empty if they agree.
  [[nodiscard]] std::string disagreement() const;
  /// The first reason for one device.
  [[nodiscard]] std::string disagreement(std::size_t place) const;
  /// The result of the re-run check of a device in one sentence. Empty if there was no check, or if there is nothing to
  /// add.
  [[nodiscard]] std::string rerun_check_text(std::size_t place) const;
  /// "the devices agree" or "the devices do not agree"; for one device "nothing is wrong" or "something is wrong".
  [[nodiscard]] std::string_view verdict() const;
  /// The number of results that were compared with the reference, on all devices.
  [[nodiscard]] std::int64_t checked_values() const;
  /// The table that `concord compare` prints.
  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::string json(JsonDetail detail = JsonDetail::devices) const;
  /// One self-contained HTML page: devices, losses, the error of every operator, times and rooflines.
  [[nodiscard]] std::string html() const;
};

/// Trains `network` for `options.steps` steps on every device, from the same weights and on the same batches. Before
/// the first and after the last step, each device runs every operator of the training step once more on the inputs that
/// the operator had on devices[0], unfused and as fused. Each result is compared with the reference within a
/// tolerance. `options.check_every` adds checks of the fused kernels between the steps.
/// Losses of correct devices drift apart too, because training amplifies rounding; `options.drift` measures this
/// effect. If a loss is not finite, or deviates more than 100 times this effect, the device trains again up to that
/// step, and its steps are checked on its own values (RerunCheck).
/// Throws ArgumentError for no device, no step, batch 0 or a case_node that is not an operator, and the errors of
/// data::check().
[[nodiscard]] Comparison compare(nn::Module& network, const std::string& name, const Objective& objective,
                                 const optim::Optimizer& optimizer, const Samples& dataset,
                                 std::span<const DevicePtr> devices, const CompareOptions& options = {});

}  // namespace concord
