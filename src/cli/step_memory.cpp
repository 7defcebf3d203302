// The memory of a training step.
#include "concord/cli/step_memory.hpp"

namespace concord::cli {

void StepMemoryOptions::add(CLI::App& command) {
  command.add_option("--batch", training.batch, "Samples per step")->capture_default_str()->check(count());
  training.add_optimizer(command, "The optimizer; its state is counted");
  command.add_option("--device", device, "The device whose memory is planned")
      ->capture_default_str()
      ->check(device_selector());
}

namespace {

MemoryNeed planned(const models::Model& model, nn::Module& network, const train::Source& source, std::int64_t batch,
                   const DevicePtr& device, const TrainingOptions& training, MemoryDetail detail) {
  Graph graph;
  const train::BatchValues values = train::add_inputs(graph, source, batch);
  const Value loss = objective_of(model)(network(values.features), values.labels);
  optim::minimize(loss, training.make_optimizer(), {.groups = training.make_groups(network, source)});
  return memory_need(graph, std::vector{loss}, Variables(device, training.seed), detail);
}

}  // namespace

MemoryNeed step_memory(const models::Model& model, nn::Module& network, const train::Source& source, std::int64_t batch,
                       const DevicePtr& device, const TrainingOptions& training) {
  try {
    return planned(model, network, source, batch, device, training, MemoryDetail::kernels);
  } catch (const Error&) {
    rethrow_with_advice_on_batch(batch, *device, [&](std::int64_t size, MemoryDetail other) {
      return planned(model, network, source, size, device, training, other).total();
    });
  }
}

std::optional<MemoryNeed> step_memory_if_possible(const models::Model& model, nn::Module& network,
                                                  const train::Source& source, std::int64_t batch,
                                                  const DevicePtr& device, const TrainingOptions& training) {
  const std::size_t bytes = source.features[0].spec.bytes() * static_cast<std::size_t>(batch);
  if (bytes > device->info().max_allocation) return std::nullopt;  // at once: oneDNN takes long to refuse it
  try {
    return planned(model, network, source, batch, device, training, MemoryDetail::values);
  } catch (const OutOfMemory&) {
  } catch (const NotSupported&) {
  }
  return std::nullopt;
}

}  // namespace concord::cli
