// What the tests of the export share: inputs, small networks, and how far the results of a network and of its file are
// apart.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include "concord/core/philox.hpp"
#include "concord/onnx/export.hpp"
#include "concord/onnx/network.hpp"
#include "concord_test.hpp"
#include "files.hpp"

namespace concord::test {

inline Tensor random_input(const TensorSpec& spec, int classes = 8) {
  Tensor tensor(spec);
  const Philox numbers(7, philox_purpose("export test"));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float u = numbers.uniform(static_cast<std::uint64_t>(i));
    if (spec.dtype == DType::f32) tensor.values<float>()[at] = 4 * u - 2;
    if (spec.dtype == DType::i32) {
      tensor.values<std::int32_t>()[at] = static_cast<std::int32_t>(u * static_cast<float>(classes));
    }
  }
  return tensor;
}

inline double number_at(const Tensor& tensor, std::size_t i) {
  if (tensor.dtype() == DType::f32) return static_cast<double>(tensor.values<float>()[i]);
  return tensor.values<std::int32_t>()[i];
}

/// The largest difference relative to the largest number.
inline double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.spec() == b.spec());
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.elements()); ++i) {
    const double x = number_at(a, i), y = number_at(b, i);
    if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    if (x == y) continue;
    most = std::isfinite(x - y) ? std::max(most, std::abs(x - y)) : 1e30;
  }
  return most / largest;
}

inline nn::Sequential two_layers() {
  nn::Sequential net;
  net.push(nn::Linear(6, 5)).push(nn::Tanh{}).push(nn::Linear(5, 3));
  return net;
}

inline bool is_cpu(const DevicePtr& device) { return device->info().id == "cpu"; }

inline Value constants(Graph& graph, Shape shape) { return full(graph, std::move(shape), 0.5F); }

/// A network of one function.
struct Formula : nn::Module {
  std::function<Values(Value)> formula;
  explicit Formula(std::function<Values(Value)> f) : formula(std::move(f)) {}
  Values forward_values(const Values& inputs) override { return formula(inputs.only()); }
};

inline std::shared_ptr<nn::Module> formula(std::function<Values(Value)> f) {
  return std::make_shared<Formula>(std::move(f));
}

inline constexpr double kOtherBits = 1e-30;  // a difference in signs of zeros alone

/// The largest difference of the network and its file on a device; 0 if they have the same bits.
inline double difference_of_file(const std::shared_ptr<nn::Module>& network, const TensorSpec& spec,
                                 const DevicePtr& device, onnx::ExportOptions options = {}, int classes = 8) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "network.onnx";
  options.input = spec.shape;
  options.dtype = spec.dtype;
  options.seed = 3;
  onnx::save(file, *network, options);
  const Tensor input = random_input(spec, classes);
  Session own(network, device, {.seed = 3}), imported(onnx::load(file), device);
  const std::vector<std::string> names = network->input_names();
  const NamedTensors expected = own.run({{names.empty() ? "input" : names[0], input}});
  const NamedTensors given = imported.run({{"input", input}});
  REQUIRE(given.size() == expected.size());
  double most = 0;
  for (const auto& [name, tensor] : expected) {
    const bool has_own_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
    const std::string there = has_own_name ? name : expected.size() == 1 ? "output" : "output" + name;
    REQUIRE(given.contains(there));
    if (std::ranges::equal(given.at(there).bytes(), tensor.bytes())) continue;
    most = std::max({most, difference(given.at(there), tensor), kOtherBits});
  }
  return most;
}

}  // namespace concord::test
