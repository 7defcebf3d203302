// A network with a batch of random samples on one device: what bench and profile run.
#pragma once

#include <optional>

#include "concord/cli/options.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/compile/tuning.hpp"

namespace concord::cli {

/// Which network on what.
struct BenchOptions {
  TrainingOptions training;
  std::string input;
  DeviceOption device;
  PrecisionOption precision;
  MemoryBudgetOption memory_budget;
  void add(CLI::App& command);
};

class BenchNetwork {
 public:
  /// Opens the device. Throws ArgumentError. `options` must live as long.
  explicit BenchNetwork(const BenchOptions& options) : BenchNetwork(options, options.device.open()) {}
  /// On a device that is open.
  BenchNetwork(const BenchOptions& options, DevicePtr device);

  [[nodiscard]] const models::Model& model() const { return model_; }
  [[nodiscard]] const Shape& sample() const { return sample_; }
  [[nodiscard]] const DevicePtr& device() const { return device_; }
  [[nodiscard]] std::int64_t parameters() const { return parameters_of(model_, *network_, source_); }

  /// One training step, compiled and fed. This and the following throw OutOfMemory and NotSupported with the largest
  /// batch that is possible.
  [[nodiscard]] Program training_step();
  /// The forward pass in evaluation mode, compiled and fed.
  [[nodiscard]] Program inference();

  /// The products of both. Throw NotSupported where the device has no choice of kernels.
  [[nodiscard]] std::vector<TunableProduct> step_products();
  [[nodiscard]] std::vector<TunableProduct> inference_products();

 private:
  /// Returns what the program computes.
  using Trace = std::vector<Value> (BenchNetwork::*)(Graph& graph, std::int64_t batch);
  [[nodiscard]] std::vector<Value> traced_inference(Graph& graph, std::int64_t batch);
  [[nodiscard]] std::vector<Value> traced_step(Graph& graph, std::int64_t batch);
  [[nodiscard]] Program compiled(Trace trace, const CompileOptions& options);
  [[nodiscard]] std::vector<TunableProduct> products(Trace trace);
  /// The error that is being handled, with the batch that is possible.
  [[noreturn]] void rethrow_with_advice(Trace trace, const CompileOptions& options);
  /// Made once a program is known to fit.
  [[nodiscard]] const Dataset& data();

  const BenchOptions& options_;
  const models::Model& model_;
  Shape sample_;
  std::shared_ptr<nn::Module> network_;
  train::Source source_;
  DevicePtr device_;
  VariablesPtr variables_;
  std::vector<optim::Group> groups_;
  std::optional<Dataset> data_;
};

}  // namespace concord::cli
