// ONNX files that others made: what they give is compared with what onnxruntime recorded
// (tests/goldens/onnx_models.py).
#include <cmath>

#include "concord/onnx/host_tensor.hpp"
#include "goldens.hpp"
#include "onnx/onnx_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

// As `numbers` of the script.
double recorded_number(std::uint64_t index) {
  return static_cast<double>(((index + 1) * 2654435761U % (std::uint64_t{1} << 32U)) >> 8U) / 0x1p23 - 1;
}

Tensor recorded_input(const onnx::Declaration& input, const Shape& shape) {
  onnx::HostTensor host(input.type, {shape.dims().begin(), shape.dims().end()});
  for (std::size_t i = 0; i < static_cast<std::size_t>(host.elements()); ++i) {
    const double number = recorded_number(i);
    host.set(i, host.floating() ? number : std::floor((number + 1) * 128));
  }
  return onnx::tensor_of(host);
}

}  // namespace

TEST_CASE("ONNX files of others give what onnxruntime gives", "[onnx]") {
  const std::filesystem::path folder = model_folder();
  for (const nlohmann::json& record : golden("onnx_models.json")) {
    const auto file = record["file"].get<std::string>();
    if (folder.empty() || !std::filesystem::exists(folder / file)) {
      WARN("skipped: " << file << " is not in the folder of models");
      continue;
    }
    for (const DevicePtr& device : devices()) {
      INFO(file << " on " << device->info().id);
      const onnx::Network net = onnx::load(folder / file);
      NamedTensors inputs;
      for (const onnx::Declaration& input : net.inputs()) {
        inputs.emplace(input.name,
                       recorded_input(input, Shape(record["inputs"][input.name].get<std::vector<std::int64_t>>())));
      }
      Session session(net, device);
      const NamedTensors outputs = session.run(inputs);
      REQUIRE(outputs.size() == record["outputs"].size());
      for (const auto& [name, expected] : record["outputs"].items()) {
        INFO(name);
        CHECK(outputs.at(name).shape() == Shape(expected["shape"].get<std::vector<std::int64_t>>()));
        CHECK(difference(outputs.at(name), expected["values"]) < 1e-4);
      }
    }
  }
}
