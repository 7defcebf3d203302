// Convolution and pooling layers against recorded PyTorch layers: results, gradients, parameters' names and shapes.
#include "concord/nn/conv.hpp"

#include "concord/core/philox.hpp"
#include "concord/nn/pool.hpp"
#include "concord/ops/conv.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Shape kSignal{2, 4, 9}, kImage{1, 4, 6, 7}, kVolume{1, 2, 4, 5, 6};

struct Recorded {
  std::string name;
  Shape x;
  std::function<Value(Value)> layer;
};

template <class Layer>
Recorded recorded(std::string name, const Shape& x, Layer layer) {
  return {std::move(name), x, [layer](Value v) mutable { return layer(v); }};
}

template <class Pool, class Unpool>
Recorded there_and_back(std::string name, const Shape& x, Pool pool, Unpool unpool) {
  return {std::move(name), x, [=](Value v) mutable { return unpool(pool.with_indices(v)); }};
}

std::vector<Recorded> layers() {
  return {
      recorded("conv1d", kSignal, nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2})),
      recorded("conv2d same", kImage, nn::Conv2d(4, 3, {2, 4}, {.padding = nn::same, .dilation = {1, 2}})),
      recorded("conv2d reflect", kImage,
               nn::Conv2d(4, 3, 3, {.padding = {2, 1}, .bias = false, .padding_mode = PadMode::reflect})),
      recorded("conv2d replicate", kImage,
               nn::Conv2d(4, 3, 3, {.padding = {1, 2}, .padding_mode = PadMode::replicate})),
      recorded("conv2d circular", kImage,
               nn::Conv2d(4, 3, {2, 3}, {.padding = nn::same, .padding_mode = PadMode::circular})),
      recorded("conv2d depthwise", kImage, nn::Conv2d(4, 8, 3, {.padding = 1, .groups = 4})),
      recorded("conv3d", kVolume, nn::Conv3d(2, 3, {2, 3, 2}, {.stride = {1, 2, 1}, .padding = {0, 1, 1}})),
      recorded("conv_transpose1d", kSignal,
               nn::ConvTranspose1d(4, 6, 4, {.stride = 3, .padding = 1, .output_padding = 2, .groups = 2})),
      recorded("conv_transpose2d", kImage,
               nn::ConvTranspose2d(4, 3, 3, {.stride = 2, .padding = 1, .output_padding = 1})),
      recorded("conv_transpose2d dilated", kImage,
               nn::ConvTranspose2d(4, 2, {2, 3},
                                   {.stride = {1, 2}, .output_padding = {2, 1}, .bias = false, .dilation = {3, 1}})),
      recorded("conv_transpose3d", kVolume, nn::ConvTranspose3d(2, 2, 2, {.stride = 2})),
      recorded("max_pool1d", kSignal, nn::MaxPool1d(3, {.stride = 2, .padding = 1, .dilation = 2})),
      recorded("max_pool2d", kImage, nn::MaxPool2d({3, 2}, {.stride = 2, .padding = 1, .ceil_mode = true})),
      recorded("max_pool3d", kVolume, nn::MaxPool3d(2, {.stride = nn::Extent<3>{1, 2, 2}})),
      recorded("avg_pool1d", kSignal, nn::AvgPool1d(4, {.stride = 3, .padding = 2, .ceil_mode = true})),
      recorded("avg_pool2d", kImage,
               nn::AvgPool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false})),
      recorded("avg_pool2d divisor", kImage, nn::AvgPool2d({2, 3}, {.divisor_override = 4})),
      recorded("avg_pool3d", kVolume, nn::AvgPool3d({2, 2, 3}, {.padding = {0, 1, 1}})),
      recorded("lp_pool1d", kSignal, nn::LPPool1d(3, 2)),
      recorded("lp_pool2d", kImage, nn::LPPool2d(2, 3, {.stride = 2, .ceil_mode = true})),
      recorded("adaptive_avg_pool1d", kSignal, nn::AdaptiveAvgPool1d(4)),
      recorded("adaptive_avg_pool2d", kImage, nn::AdaptiveAvgPool2d({4, 3})),
      recorded("adaptive_avg_pool3d", kVolume, nn::AdaptiveAvgPool3d({3, 2, 4})),
      recorded("adaptive_max_pool1d", kSignal, nn::AdaptiveMaxPool1d(2)),
      recorded("adaptive_max_pool2d", kImage, nn::AdaptiveMaxPool2d({5, 2})),
      recorded("adaptive_max_pool3d", kVolume, nn::AdaptiveMaxPool3d({2, 3, 1})),
      {"max_unpool1d", kSignal, [](Value x) { return nn::MaxUnpool1d(2)(nn::MaxPool1d(2).with_indices(x), 9); }},
      {"max_unpool2d", kImage,
       [](Value x) {
         return nn::MaxUnpool2d(3, {.padding = 1})(nn::MaxPool2d(3, {.padding = 1}).with_indices(x), {6, 7});
       }},
      there_and_back("max_unpool3d", kVolume, nn::MaxPool3d({2, 1, 2}), nn::MaxUnpool3d({2, 1, 2})),
  };
}

/// Layers with pointwise operators and a sum between them.
template <class Conv, class Pool>
struct Network : nn::Module {
  Network(Conv a, Pool b, Conv c) : first(a), pool(b), last(c) {}
  Conv first;
  Pool pool;
  Conv last;
  Value forward(Value x) override {
    const Value y = first(x);
    const Value centred = y - mean(y, {0, -1}, true);
    return last(pool(relu(centred) + y * 0.5F));
  }
};

Shape shape_of(const nlohmann::json& dims) { return Shape(dims.get<std::vector<std::int64_t>>()); }

/// Runs the layer on the recorded source and parameters and compares all that was recorded.
void check_layer(const DevicePtr& device, const Recorded& one, const nlohmann::json& record) {
  INFO(one.name << " on " << device->info().id);
  const auto variables = std::make_shared<Variables>(device, 0);
  Graph graph;
  const Value x = graph.input("x", {DType::f32, one.x});
  const Value y = one.layer(x);
  REQUIRE(y.shape() == shape_of(record.at("shape")));
  const Value seed = graph.input("seed", y.spec());
  std::vector<Value> wanted{x};
  for (const VariablePtr& variable : graph.variables()) wanted.push_back(graph.variable(variable));
  REQUIRE(wanted.size() == record.at("parameters").size() + 1);
  std::vector<Value> outputs = gradient(sum(y * seed), wanted);
  outputs.push_back(y);
  Program program = compile(graph, outputs, variables);
  for (const auto& [name, parameter] : record.at("parameters").items()) {
    variables->write(name, tensor_of(shape_of(parameter.at("shape")), parameter.at("value")));
  }
  program.write("x", tensor_of(one.x, record.at("x")));
  program.write("seed", tensor_of(y.shape(), record.at("seed")));
  program.run();
  CHECK(difference(program.read(y), record.at("y")) < 1e-5);
  CHECK(difference(program.read(outputs[0]), record.at("dx")) < 1e-5);
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    INFO("gradient of " << wanted[i].name());
    CHECK(difference(program.read(outputs[i]), record.at("parameters").at(wanted[i].name()).at("gradient")) < 1e-5);
  }
}

}  // namespace

TEST_CASE("convolution and pooling layers equal PyTorch's", "[nn][conv][pool]") {
  const nlohmann::json records = golden("conv.json").at("layers");
  const std::vector<Recorded> all = layers();
  CHECK(records.size() == all.size());
  for (const Recorded& one : all) {
    for (const DevicePtr& device : devices()) check_layer(device, one, records.at(one.name));
  }
}

TEST_CASE("networks of signals and volumes agree on all devices", "[nn][conv]") {
  std::vector<Tensor> expected;
  Network signals(nn::Conv1d(3, 4, 3), nn::MaxPool1d(2), nn::Conv1d(4, 2, 2));
  Network volumes(nn::Conv3d(3, 4, 3), nn::AvgPool3d({1, 1, 2}), nn::Conv3d(4, 2, {2, 1, 1}));
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{2, 3, 12}});
    const Value v = graph.input("v", {DType::f32, Shape{2, 3, 4, 5, 6}});
    std::vector<Value> outputs;
    {
      const nn::Scope scope(graph, "signals");
      outputs.push_back(signals(x));
    }
    {
      const nn::Scope scope(graph, "volumes");
      outputs.push_back(volumes(v));
    }
    const Value loss = sum(square(outputs[0])) + sum(square(outputs[1]));
    std::vector<Value> wanted{x, v};
    for (const VariablePtr& variable : graph.variables()) wanted.push_back(graph.variable(variable));
    for (const Value& diff : gradient(loss, wanted)) outputs.push_back(diff);
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 3));
    for (const Value& input : {x, v}) {
      Tensor tensor(input.spec());
      const Philox numbers(5, philox_purpose("layout"));
      std::uint64_t i = 0;
      for (float& value : tensor.values<float>()) value = numbers.uniform(i++) - 0.5F;
      program.write(input.name(), tensor);
    }
    program.run();
    std::vector<Tensor> results;
    for (const Value& output : outputs) results.push_back(program.read(output));
    if (expected.empty()) expected = results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO(outputs[i].name());
      CHECK(difference(results[i].values<float>(), expected[i].values<float>()) < 1e-5);
    }
  }
}

TEST_CASE("a mirrored layer convolves", "[nn][conv]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{1, 1, 3}});
  nn::Conv1d layer(1, 1, 2, {.padding = 1, .bias = false, .mirror = true});
  const Value y = layer(x);
  for (const DevicePtr& device : devices()) {
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, std::vector{y}, variables);
    variables->write("weight", Tensor::of<float>(Shape{1, 1, 2}, {4, 5}));
    program.write("x", Tensor::of<float>(Shape{1, 1, 3}, {1, 2, 3}));
    program.run();
    const Tensor got = program.read(y);
    CHECK(std::ranges::equal(got.values<float>(), std::vector<float>{4, 13, 22, 15}));
  }
}

TEST_CASE("convolution layers begin as PyTorch's do", "[nn][conv]") {
  const auto bound = [](const VariablePtr& variable) { return static_cast<double>(variable->init.b); };
  const nn::Conv1d conv(4, 6, 3, {.groups = 2});
  CHECK(bound(conv.weight()) == Approx(1 / std::sqrt(2.0 * 3)));
  CHECK(bound(conv.bias()) == Approx(1 / std::sqrt(2.0 * 3)));
  const nn::ConvTranspose3d back(4, 6, {1, 2, 3}, {.groups = 2});
  CHECK(back.weight()->spec.shape == Shape{4, 3, 1, 2, 3});
  CHECK(bound(back.weight()) == Approx(1 / std::sqrt(3.0 * 6)));
  CHECK(bound(back.bias()) == Approx(1 / std::sqrt(3.0 * 6)));
}

TEST_CASE("a convolution pads by other numbers before and after", "[nn][conv]") {
  nn::Conv2d layer(4, 3, {3, 2}, {.padding = nn::Padding<2>::before_after({1, 0}, {2, 1}), .bias = false});
  Graph graph;
  const Value y = layer(graph.input("x", {DType::f32, Shape{2, 4, 6, 7}}));
  CHECK(y.shape() == Shape{2, 3, 7, 7});
  const auto* conv = dynamic_cast<const ops::Conv*>(y.node().op.get());
  REQUIRE(conv != nullptr);
  CHECK(conv->options().padding == ops::Spatial{0, 1, 0});
  CHECK(conv->options().padding_after == ops::Spatial{0, 2, 1});
}

TEST_CASE("convolution layers refuse what does not fit", "[nn][conv]") {
  CHECK_THROWS_AS(nn::Conv1d(4, 0, 3), ArgumentError);
  CHECK_THROWS_AS(nn::Conv3d(4, 6, {3, 0, 3}), ArgumentError);
  CHECK_THROWS_AS(nn::ConvTranspose2d(4, 6, 3, {.groups = 4}), ArgumentError);
  CHECK_THROWS_AS(nn::Conv2d(4, 6, 3, {.stride = 2, .padding = nn::same}), ArgumentError);
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 4, 6, 7}});
  CHECK_THROWS_WITH(nn::Conv2d(3, 6, 3)(x), contains("expected (N, 3, H, W), got [2, 4, 6, 7]"));
  CHECK_THROWS_WITH(nn::Conv1d(4, 6, 3)(x), contains("expected (N, 4, W), got [2, 4, 6, 7]"));
  CHECK_THROWS_WITH(nn::ConvTranspose3d(4, 6, 3)(x), contains("expected (N, 4, D, H, W)"));
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, 3, {.padding = 7, .padding_mode = PadMode::reflect})(x),
                    contains("below 6 to be reflected"));
}
