// TrainingStep: the graph that compare compiles for each device. Replica: one device of the comparison.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/io/checkpoint.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/optim/optimizer.hpp"
#include "concord/train/objective.hpp"
#include "concord/train/source.hpp"

namespace concord {

/// The columns of a batch by the names of the step's inputs.
using Batch = std::map<std::string, Tensor>;

/// Forward, loss, backward and update of a network as one graph with the inputs of train::add_inputs. The loss is
/// scaled as the precision wants it. Throws what data::check_outputs throws of the network's outputs and the classes of
/// the columns.
struct TrainingStep {
  TrainingStep(nn::Module& network, const Objective& objective, const optim::Optimizer& optimizer,
               const optim::MinimizeOptions& how, Precision products, const train::Source& source, std::int64_t batch);
  /// Compiled for a device, with the step's precision.
  [[nodiscard]] Program compiled(const VariablesPtr& variables, CompileOptions options = {}) const;

  Precision precision;
  Graph graph;
  Value loss;
  io::TensorMap weights;                             // to start with; others have random values
  std::vector<std::optional<std::int32_t>> ignored;  // the label that the loss leaves out, for each column of labels
};

/// One device with its weights and its program.
struct Replica {
  Replica(const TrainingStep& step, const DevicePtr& on, std::uint64_t seed);
  /// Enqueues a step.
  void run(const Batch& batch);
  /// Of the last step; waits for it.
  [[nodiscard]] float loss() const;
  /// Gives the variables their first values again.
  void restart(const TrainingStep& step);

  DevicePtr device;
  VariablesPtr variables;
  Program program;

 private:
  void start_with(const io::TensorMap& weights);
  std::string loss_name_;
};

/// The largest difference of losses, relative to `expected`, and the step at which it occurs. Infinite if a loss is NaN
/// or infinite.
struct LossDeviation {
  double largest = 0;
  std::int64_t at_step = 0;
};
[[nodiscard]] LossDeviation loss_deviation(const std::vector<float>& losses, const std::vector<float>& expected);
/// |a - expected| / |expected|
[[nodiscard]] double relative_deviation(float a, float expected);

void feed(Program& program, const Batch& batch);

}  // namespace concord
