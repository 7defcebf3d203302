// multiply_patches(): convolutions whose patches do not overlap have the numbers of convolutions.
#include "compile/fuse_test.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/reduce.hpp"
#include "forwarding_device.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

class PatchingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] bool multiplies_patches(const TensorSpec&, const TensorSpec&, Precision) const override { return true; }
};

struct Form {
  std::string name;
  Shape src, weights;
  std::function<Value(Value x, Value weights)> conv;
};

/// A convolution with a bias, and the gradients of its parameters.
std::vector<Value> built(const Form& form, const std::vector<Value>& inputs) {
  std::vector<std::int64_t> by_channel(form.src.rank() - 1, 1);
  by_channel[0] = form.weights[0];
  const Value y = relu(form.conv(inputs[0], inputs[1]) + reshape(inputs[2], Shape(by_channel)));
  std::vector<Value> results = gradient(sum(y * y), {inputs[1], inputs[2]});
  results.push_back(y);
  return results;
}

/// Of the network, by the names of its values.
std::map<std::string, Tensor> all_values(const DevicePtr& device, Retain retain) {
  Graph graph;
  nn::Conv2d conv{3, 8, 4, {.stride = 4}};
  const Value y = relu(conv(graph.input("x", {DType::f32, {2, 3, 8, 8}})));
  Program program = compile(graph, std::vector{y}, std::make_shared<Variables>(device, 7), {.retain = retain});
  const Array x = normal({2, 3, 8, 8}, 1);
  program.write("x", Tensor::of<float>({2, 3, 8, 8}, std::vector<float>(x.values.begin(), x.values.end())));
  program.run();
  std::map<std::string, Tensor> values;
  for (const std::string& name : program.values()) values.emplace(name, program.read(name));
  return values;
}

}  // namespace

TEST_CASE("values that are kept have the numbers of their names beside products of patches", "[compile]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const std::map<std::string, Tensor> plain = all_values(device, Retain::all);
    int compared = 0;
    for (const auto& [name, found] : all_values(std::make_shared<PatchingDevice>(device), Retain::fused)) {
      INFO(name);
      const auto expected = plain.find(name);
      if (expected == plain.end()) continue;
      ++compared;
      REQUIRE(found.shape() == expected->second.shape());
      for (std::size_t i = 0; i < found.values<float>().size(); ++i) {
        CHECK(std::abs(found.values<float>()[i] - expected->second.values<float>()[i]) < 1e-4F);
      }
    }
    CHECK(compared > 0);
  }
}

TEST_CASE("patches that do not overlap are multiplied with the bits of convolutions", "[compile]") {
  const std::vector<Form> forms{
      {"images",
       {2, 3, 8, 12},
       {5, 3, 4, 4},
       [](Value x, Value w) {
         return conv2d(x, w, {.stride = {4, 4}});
       }},
      {"unlike sides",
       {2, 3, 8, 6},
       {5, 3, 2, 3},
       [](Value x, Value w) {
         return conv2d(x, w, {.stride = {2, 3}});
       }},
      {"signals", {3, 2, 12}, {4, 2, 3}, [](Value x, Value w) { return conv1d(x, w, {.stride = 3}); }},
      {"volumes", {2, 1, 4, 2, 6}, {3, 1, 2, 1, 3}, [](Value x, Value w) {
         return conv3d(x, w, {.stride = {2, 1, 3}});
       }}};
  for (const Form& form : forms) {
    const std::vector<Input> inputs{
        {integers(form.src, 1)}, {integers(form.weights, 2)}, {integers(Shape{form.weights[0]}, 3)}};
    const auto build = [&](const std::vector<Value>& values) { return built(form, values); };
    for (const DevicePtr& device : devices()) {
      INFO(form.name << " on " << device->info().id);
      const std::vector<Tensor> expected = run(device, inputs, build);
      const std::vector<Tensor> found = run(std::make_shared<PatchingDevice>(device), inputs, build);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(difference(found[i], expected[i]).empty());
    }
  }
}

TEST_CASE("a bias goes to the product of patches, and both gradients read the same patches", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3, 8, 8}}), w = variable(graph, "w", {DType::f32, {5, 3, 4, 4}});
  const Value b = variable(graph, "b", {DType::f32, {5}}), conv = conv2d(x, w, {.stride = {4, 4}});
  const Value y = conv + reshape(b, {5, 1, 1});
  FakeDevice device;
  device.multiplies = true;
  const Lowered program = fused(graph, std::vector{y, gradient(sum(y), {w})[0]}, device);
  std::map<std::string, int> counts;
  for (const LoweredNode& node : program.nodes) {
    if (!node.is_alias()) ++counts[std::string(node.op->name())];
  }
  CHECK(counts["matmul"] == 2);
  CHECK(counts["add"] == 1);
  CHECK(counts["transpose"] == 3);  // of patches, of the result and of its gradient
  CHECK(counts.count("conv2d") + counts.count("conv2d_backward_weights") == 0);
  // Where two values have a name, it is that of the same numbers.
  std::map<std::string, ValueId> by_name;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    const auto [first, is_new] = by_name.try_emplace(program.values[v].name, id);
    if (!is_new) CHECK(program.root(first->second) == program.root(id));
  }
}

TEST_CASE("of two convolutions before one formula, one is computed with it", "[compile]") {
  const std::vector<Input> inputs{
      {normal({1, 3, 4, 4}, 1)}, {normal({5, 3, 4, 4}, 2)}, {normal({1, 3, 4, 4}, 3)}, {normal({5, 3, 4, 4}, 4)}};
  const Build build = [](const std::vector<Value>& x) {
    return std::vector{conv2d(x[0], x[1], {.stride = {4, 4}}) + conv2d(x[2], x[3], {.stride = {4, 4}})};
  };
  for (const DevicePtr& device : devices()) {
    const std::vector<Tensor> expected = run(device, inputs, build);
    const std::vector<Tensor> found = run(std::make_shared<PatchingDevice>(device), inputs, build);
    for (std::size_t i = 0; i < expected[0].values<float>().size(); ++i) {
      CHECK(found[0].values<float>()[i] == Approx(expected[0].values<float>()[i]).margin(1e-4));
    }
  }
}

TEST_CASE("other convolutions stay what they are", "[compile]") {
  const auto operators = [](Shape src, Shape weights, const Conv2dOptions& options) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, std::move(src)}), w = variable(graph, "w", {DType::f32, weights});
    FakeDevice device;
    device.multiplies = true;
    return operators_of(fused(graph, std::vector{conv2d(x, w, options)}, device));
  };
  CHECK(operators({1, 3, 9, 8}, {5, 3, 4, 4}, {.stride = {4, 4}}) == Names{"conv2d"});  // a row is left
  CHECK(operators({1, 3, 8, 8}, {5, 3, 4, 4}, {.stride = {2, 2}}) == Names{"conv2d"});
  CHECK(operators({1, 3, 6, 6}, {5, 3, 4, 4}, {.stride = {4, 4}, .padding = {1, 1}}) == Names{"conv2d"});
  CHECK(operators({1, 4, 8, 8}, {6, 2, 4, 4}, {.stride = {4, 4}, .groups = 2}) == Names{"conv2d"});
  CHECK(operators({1, 3, 8, 8}, {5, 3, 1, 1}, {}) == Names{"conv2d"});
  CHECK(operators({1, 3, 6, 6}, {5, 3, 2, 2}, {.stride = {2, 2}, .dilation = {2, 2}}) == Names{"conv2d"});
}

}  // namespace concord::test
