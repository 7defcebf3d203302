// onnx::save: traces the network for evaluation, twice where the batch is free, and writes its graph.
#include <algorithm>
#include <set>

#include "concord/compile/variables.hpp"
#include "concord/core/check.hpp"
#include "concord/onnx/export.hpp"
#include "concord/onnx/export/model_file.hpp"

namespace concord::onnx {
namespace {

std::vector<InputSpec> inputs_of(const ExportOptions& options) {
  CONCORD_CHECK(options.inputs.empty() || options.input.rank() == 0, ArgumentError,
                "an export takes `input` or `inputs`, not both");
  CONCORD_CHECK(!options.inputs.empty() || options.input.rank() > 0, ArgumentError,
                "an export needs the shape of the input, with its batch");
  if (!options.inputs.empty()) return options.inputs;
  return {{"input", {options.dtype, options.input}}};
}

std::vector<InputSpec> with_batch(std::vector<InputSpec> inputs, std::int64_t batch) {
  for (InputSpec& input : inputs) {
    std::vector<std::int64_t> dims(input.spec.shape.dims().begin(), input.spec.shape.dims().end());
    CONCORD_CHECK(!dims.empty(), ShapeError, "the input '{}' has no dimension for a free batch", input.name);
    dims[0] = batch;
    input.spec.shape = Shape(std::move(dims));
  }
  return inputs;
}

/// A traced network.
struct TracedNetwork {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Values outputs;
};

TracedNetwork traced(nn::Module& network, const std::vector<InputSpec>& inputs, bool named) {
  TracedNetwork result;
  result.graph->set_training(false);
  if (!named) {
    const std::vector<std::string> names = network.input_names();
    const Value x = result.graph->input(inputs[0].name, inputs[0].spec);
    Values values;
    values.add(names.empty() ? std::string() : names[0], x);
    result.outputs = network(values);
    return result;
  }
  Values values;
  for (const InputSpec& input : inputs) values.add(input.name, result.graph->input(input.name, input.spec));
  result.outputs = network(values);
  return result;
}

std::vector<NamedOutput> named_outputs(const Values& values, const std::vector<std::string>& names) {
  CONCORD_CHECK(names.empty() || names.size() == values.size(), ArgumentError,
                "the network has {} outputs, and {} names were given", values.size(), names.size());
  std::vector<NamedOutput> outputs;
  for (const NamedValue& value : values) {
    const std::size_t i = outputs.size();
    std::string name = value.name;
    if (name.empty()) name = values.size() == 1 ? "output" : fmt::format("output{}", i);
    if (!names.empty()) name = names[i];
    CONCORD_CHECK(!name.empty(), ArgumentError, "the name of an output is empty");
    outputs.push_back({std::move(name), value.value});
  }
  return outputs;
}

}  // namespace

void save(const std::filesystem::path& path, nn::Module& network, const ExportOptions& options) {
  check_opset(options.opset, kLeastOpset);
  const std::vector<InputSpec> inputs = inputs_of(options);
  const bool named = !options.inputs.empty(), is_free = !options.batch.empty();
  // Two batches that no size of the network is likely to be a multiple of: a size counts as one only if both are.
  constexpr std::int64_t kBatch = 2, kOther = 3;
  TracedNetwork one = traced(network, is_free ? with_batch(inputs, kBatch) : inputs, named);
  GraphSizes sizes;
  if (is_free) {
    const TracedNetwork other = traced(network, with_batch(inputs, kOther), named);
    sizes = sizes_of(*one.graph, kBatch, *other.graph, kOther);
  } else {
    sizes = sizes_of(*one.graph);
  }
  Exporter exporter(*one.graph, std::move(sizes), options.opset);
  const WeightSource weights(options.weights, options.seed);
  Model model = new_model(options.opset);
  model.graph = exporter.write(
      named_outputs(one.outputs, options.outputs), {},
      [&](const Variable& variable) { return weights.value_of(variable); }, options.batch);
  write_file(path, model);
}

}  // namespace concord::onnx
