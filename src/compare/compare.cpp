// compare: lockstep training on several devices, timing, and the check of every operator.
#include "concord/compare/compare.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "concord/compare/extent.hpp"
#include "concord/compare/tolerance.hpp"
#include "concord/compile/measure.hpp"
#include "concord/compile/program.hpp"
#include "concord/core/check.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/optim/minimize.hpp"

namespace concord {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The batches of a run, as the network takes them, in the order of data::permutation.
class Batches {
 public:
  Batches(const Dataset& dataset, std::int64_t batch, std::uint64_t seed)
      : dataset_(dataset), batch_(batch), seed_(seed) {}

  [[nodiscard]] TensorSpec features() const {
    const TensorSpec sample = dataset_.feature_spec();
    return {sample.dtype == DType::u8 ? DType::f32 : sample.dtype, with_batch(sample.shape)};
  }
  [[nodiscard]] TensorSpec labels() const { return {dataset_.labels.dtype(), with_batch(dataset_.label_spec().shape)}; }
  /// Features and labels of the next batch.
  std::pair<Tensor, Tensor> next() {
    Tensor x(features()), y(labels());
    const std::size_t label_bytes = y.spec().bytes() / static_cast<std::size_t>(batch_);
    const std::size_t values = static_cast<std::size_t>(x.elements() / batch_);
    const std::size_t feature_bytes = x.spec().bytes() / static_cast<std::size_t>(batch_);
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch_); ++row) {
      const auto from = static_cast<std::size_t>(next_row());
      std::memcpy(y.bytes().data() + row * label_bytes, dataset_.labels.bytes().data() + from * label_bytes,
                  label_bytes);
      if (dataset_.features.dtype() == DType::u8) {
        const auto to = x.values<float>().subspan(row * values, values);
        const auto pixels = dataset_.features.values<std::uint8_t>().subspan(from * values, values);
        std::transform(pixels.begin(), pixels.end(), to.begin(),
                       [&](std::uint8_t p) { return static_cast<float>(p) * dataset_.scale + dataset_.shift; });
      } else {
        std::memcpy(x.bytes().data() + row * feature_bytes, dataset_.features.bytes().data() + from * feature_bytes,
                    feature_bytes);
      }
    }
    return {std::move(x), std::move(y)};
  }

 private:
  [[nodiscard]] Shape with_batch(const Shape& sample) const {
    std::vector<std::int64_t> dims{batch_};
    dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
    return Shape(std::move(dims));
  }
  std::int32_t next_row() {
    if (position_ == order_.size()) {
      order_ = data::permutation(dataset_.size(), seed_, epoch_++);
      position_ = 0;
    }
    return order_[position_++];
  }

  const Dataset& dataset_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> order_;
  std::size_t position_ = 0;
};

// One device's side of the comparison.
struct Side {
  DevicePtr device;
  VariablesPtr variables;
  std::optional<Program> program;
};

// The training step of the network as one graph, from which every device compiles its own program.
struct Step {
  Step(nn::Module& network, const Loss& loss_of, const optim::Optimizer& optimizer, const CompareOptions& options,
       const Batches& batches)
      : precision(options.precision) {
    features = graph.input("features", batches.features());
    labels = graph.input("labels", batches.labels());
    loss = loss_of(network(features), labels);
    optim::minimize(loss, optimizer, {.groups = options.groups, .loss_scale = optim::loss_scale_for(precision)});
  }
  Precision precision;
  Graph graph;
  Value features, labels, loss;
};

void feed(Program& program, const std::pair<Tensor, Tensor>& batch) {
  program.write("features", batch.first);
  program.write("labels", batch.second);
}

float loss_of(const Program& program, Value loss) { return program.read(loss).values<float>()[0]; }

// The operators of one device that were checked: what fusion leaves as it was has not to be run again.
using Checked = std::set<std::tuple<const Operator*, std::string, std::string>>;  // and the node and the kernel

// Holds the results of one program's operators, each run on the reference's inputs, against the reference's results.
void check_program(Program& program, const std::map<std::string, Tensor>& reference, Precision precision,
                   std::int64_t steps_done, Checked& checked, DeviceRun& run) {
  const auto given = [&](const std::string& name) -> const Tensor* {
    const auto found = reference.find(name);
    return found == reference.end() ? nullptr : &found->second;
  };
  const auto check = [&](const ReplayedNode& node) {
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const auto expected = reference.find(node.outputs[k]);
      if (expected == reference.end()) continue;  // a reorder of this device's own
      ++run.checked_values;
      const double error = largest_difference(node.results[k], expected->second);
      if (error == 0 || run.first_deviation) continue;
      const double tolerance = tolerance_of(node, k, precision);
      if (error <= tolerance) continue;
      const TraceEntry& entry = node.entry;
      run.first_deviation = Deviation{entry.node,      entry.op,     entry.kernel,
                                      node.outputs[k], entry.shapes, entry.node.rfind("grad/", 0) == 0,
                                      error,           tolerance,    steps_done};
    }
  };
  program.replay(given, check, [&](const TraceEntry& entry, const Operator* op) {
    return checked.emplace(op, entry.node, entry.kernel).second;
  });
}

// Runs every operator of the step on every device with the inputs it has on the reference, from the same weights: once
// each by itself, and what fusion makes of them. The reference's own fused kernels are checked like the others.
void check_operators(Step& step, std::vector<Side>& sides, const std::pair<Tensor, Tensor>& batch,
                     std::int64_t steps_done, std::vector<DeviceRun>& runs) {
  std::map<std::string, Tensor> reference;
  const std::map<std::string, Tensor> weights = sides[0].variables->read_all();
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto variables = std::make_shared<Variables>(sides[i].device, sides[0].variables->seed());
    Checked checked;
    for (const bool fused : {false, true}) {
      Program program = compile(step.graph, std::vector{step.loss}, variables,
                                {.keep_all = !fused, .keep_fused = fused, .precision = step.precision});
      for (const auto& [name, value] : weights) {
        if (variables->contains(name)) variables->write(name, value);
      }
      feed(program, batch);
      if (i == 0 && !fused) {
        program.replay([](const std::string&) { return nullptr; },
                       [&](const ReplayedNode& node) {
                         checked.emplace(node.op, node.entry.node, node.entry.kernel);
                         for (std::size_t k = 0; k < node.results.size(); ++k) {
                           reference.emplace(node.outputs[k], node.results[k]);
                         }
                       });
      } else {
        check_program(program, reference, step.precision, steps_done, checked, runs[i]);
      }
    }
  }
}

}  // namespace

Comparison compare(nn::Module& network, const std::string& name, const Loss& loss, const optim::Optimizer& optimizer,
                   const Dataset& dataset, std::span<const DevicePtr> devices, const CompareOptions& options) {
  CONCORD_CHECK(!devices.empty(), ArgumentError, "compare: no device was given");
  CONCORD_CHECK(options.steps > 0, ArgumentError, "compare: steps must be at least 1, got {}", options.steps);
  CONCORD_CHECK(options.batch > 0, ArgumentError, "compare: the batch must be at least 1, got {}", options.batch);
  CONCORD_CHECK(dataset.features.elements() > 0, ArgumentError, "compare: the data set is empty");
  Batches batches(dataset, options.batch, options.seed);
  Step step(network, loss, optimizer, options, batches);
  Comparison comparison{name, options, {}};
  std::vector<Side> sides;
  auto batch = batches.next();
  for (const DevicePtr& device : devices) {
    const Clock::time_point start = Clock::now();
    Side side{device, std::make_shared<Variables>(device, options.seed), {}};
    side.program.emplace(compile(step.graph, std::vector{step.loss}, side.variables, {.precision = options.precision}));
    sides.push_back(std::move(side));
    DeviceRun run;
    run.device = device->info();
    run.first_step_ms = ms_since(start);
    comparison.runs.push_back(std::move(run));
  }
  check_operators(step, sides, batch, 0, comparison.runs);

  for (std::int64_t i = 0; i < options.steps; ++i) {
    if (i > 0) batch = batches.next();
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const Clock::time_point start = Clock::now();
      feed(*sides[d].program, batch);
      sides[d].program->run();
      DeviceRun& run = comparison.runs[d];
      run.losses.push_back(loss_of(*sides[d].program, step.loss));
      if (i == 0) run.first_step_ms += ms_since(start);
      const auto expected = static_cast<double>(comparison.runs[0].losses.back());
      const double deviation =
          std::abs(static_cast<double>(run.losses.back()) - expected) / std::max(std::abs(expected), 1e-30);
      if (deviation > run.largest_loss_deviation || std::isnan(deviation)) {
        run.largest_loss_deviation = std::isnan(deviation) ? INFINITY : deviation;
        run.largest_at_step = i + 1;
      }
    }
  }
  for (std::size_t d = 0; d < sides.size(); ++d) {
    comparison.runs[d].memory_bytes = sides[d].device->allocated();
  }
  check_operators(step, sides, batch, options.steps, comparison.runs);
  for (std::size_t d = 0; d < sides.size(); ++d) {
    const RunTimes times = measure(*sides[d].program, {.seconds = options.seconds, .least = 5});
    DeviceRun& run = comparison.runs[d];
    run.median_ms = times.median_ms;
    run.min_ms = times.min_ms;
    run.max_ms = times.max_ms;
    run.samples_per_second = 1e3 * static_cast<double>(options.batch) / times.median_ms;
  }
  return comparison;
}

}  // namespace concord
