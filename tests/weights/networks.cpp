// Published files of weights in networks of their own: pitch, faces, image distance, emotions. Their outputs on every
// device are those of PyTorch and Keras (tests/goldens/weights_networks.py).
#include "concord/weights/load.hpp"
#include "files.hpp"
#include "goldens.hpp"
#include "weights/drawn.hpp"
#include "weights/hdf5_reader.hpp"
#include "weights/model_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr nn::BatchNormOptions kKerasNorm{.epsilon = 1e-3F};

/// Pitch (Kim et al., "CREPE: A Convolutional Representation for Pitch Estimation", 2018), tiny: (N, 1024) → (N, 360).
struct Crepe : nn::Module {
  std::vector<nn::Conv2d> convs;
  std::vector<nn::BatchNorm2d> norms;
  nn::Linear classifier{256, 360};
  Crepe() {
    constexpr int kSizes[] = {1, 128, 16, 16, 16, 32, 64};
    for (std::size_t i = 0; i < 6; ++i) {
      const bool is_first = i == 0;
      convs.push_back({kSizes[i], kSizes[i + 1], {is_first ? 512 : 64, 1}, {.stride = {is_first ? 4 : 1, 1}}});
      norms.emplace_back(kSizes[i + 1], kKerasNorm);
    }
  }
  Value forward(Value x) override {
    x = reshape(x, Shape{x.shape()[0], 1, x.shape()[1], 1});
    for (std::size_t i = 0; i < convs.size(); ++i) {
      x = pad(x, {0, 0, i == 0 ? 254 : 31, 0}, {0, 0, i == 0 ? 254 : 32, 0});
      x = max_pool2d(norms[i](relu(convs[i](x))), {.kernel = {2, 1}, .stride = {2, 1}});
    }
    return sigmoid(classifier(reshape(transpose(x, {0, 2, 1, 3}), {-1, 256})));
  }
  Children children() override {
    Children all{{"classifier", &classifier}};
    for (std::size_t i = 0; i < convs.size(); ++i) {
      const std::string name = "conv" + std::to_string(i + 1);
      all.push_back({name, &convs[i]});
      all.push_back({name + "_BN", &norms[i]});
    }
    return all;
  }
};

struct MtcnnConv {
  int outputs, kernel, pool = 0;  // a pool of this kernel with stride 2; 0: none
};

/// The networks of MTCNN (Zhang et al., 2016): convolutions with PReLU and pooling, a dense layer, then the heads.
struct Mtcnn : nn::Module {
  std::vector<MtcnnConv> sizes;
  std::vector<nn::Conv2d> convs;
  std::vector<nn::PReLU> activations;
  std::vector<nn::Linear> dense;       // the common one, then heads; empty for a network of convolutions
  std::vector<nn::Conv2d> conv_heads;  // else these
  Mtcnn(std::vector<MtcnnConv> list, std::pair<int, int> common, const std::vector<int>& heads)
      : sizes(std::move(list)) {
    int inputs = 3;
    for (const MtcnnConv& size : sizes) {
      convs.push_back(nn::Conv2d{inputs, size.outputs, size.kernel});
      activations.push_back(nn::PReLU{size.outputs});
      inputs = size.outputs;
    }
    if (common.second > 0) {
      dense.push_back(nn::Linear{common.first, common.second});
      activations.push_back(nn::PReLU{common.second});
    }
    for (const int outputs : heads) {
      if (common.second > 0) {
        dense.push_back(nn::Linear{common.second, outputs});
      } else {
        conv_heads.push_back(nn::Conv2d{inputs, outputs, 1});
      }
    }
  }
  Value forward(Value x) override {
    for (std::size_t i = 0; i < convs.size(); ++i) {
      x = activations[i](convs[i](x));
      const std::int64_t pool = sizes[i].pool;
      if (pool > 0) x = max_pool2d(x, {.kernel = {pool, pool}, .stride = {2, 2}, .ceil_mode = true});
    }
    if (!dense.empty()) x = activations.back()(dense[0](flatten(transpose(x, {0, 3, 2, 1}))));
    std::vector<Value> outputs;
    for (std::size_t i = 1; i < dense.size(); ++i) outputs.push_back(dense[i](x));
    for (nn::Conv2d& head : conv_heads) outputs.push_back(head(x));
    outputs[0] = softmax(outputs[0], 1);
    return concat(outputs, 1);
  }
  Children children() override {
    Children all;
    const auto numbered = [](const char* kind, std::size_t i) { return kind + std::to_string(i); };
    for (std::size_t i = 0; i < convs.size(); ++i) all.push_back({numbered("conv", i + 1), &convs[i]});
    for (std::size_t i = 0; i < activations.size(); ++i) all.push_back({numbered("prelu", i + 1), &activations[i]});
    const std::size_t last = convs.size() + 1;
    if (!dense.empty()) all.push_back({numbered("dense", last), &dense[0]});
    for (std::size_t i = 1; i < dense.size(); ++i) {
      all.push_back({numbered("dense", last + 1) + numbered("_", i), &dense[i]});
    }
    for (std::size_t i = 0; i < conv_heads.size(); ++i) {
      all.push_back({numbered("conv", last) + numbered("_", i + 1), &conv_heads[i]});
    }
    return all;
  }
};

/// The heads of LPIPS (Zhang et al., 2018), each on its slice of the channels: (N, C, H, W) → (N, heads).
struct LpipsHeads : nn::Module {
  std::vector<nn::Conv2d> heads;
  std::vector<int> channels;
  explicit LpipsHeads(std::vector<int> list) : channels(std::move(list)) {
    for (const int c : channels) heads.push_back({c, 1, 1, {.bias = false}});
  }
  Value forward(Value x) override {
    std::vector<Value> outputs;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      outputs.push_back(mean(heads[i](slice(x, 1, first, first + channels[i])), {2, 3}));
      first += channels[i];
    }
    return concat(outputs, 1);
  }
  Children children() override {
    Children all;
    for (std::size_t i = 0; i < heads.size(); ++i) all.push_back({"lin" + std::to_string(i) + ".model.1", &heads[i]});
    return all;
  }
};

/// A depthwise and a pointwise convolution, as Keras's SeparableConv2D.
struct SeparableConv : nn::Module {
  nn::Conv2d depthwise, pointwise;
  SeparableConv(int in, int out)
      : depthwise(in, in, 3, {.padding = 1, .groups = in, .bias = false}), pointwise(in, out, 1, {.bias = false}) {}
  Value forward(Value x) override { return pointwise(depthwise(x)); }
  Children children() override { return {{"depthwise", &depthwise}, {"pointwise", &pointwise}}; }
};

/// Emotions (Arriaga et al., "Real-time Convolutional Neural Networks for Emotion and Gender Classification", 2017):
/// images (N, 1, 64, 64) → probabilities (N, 7).
struct MiniXception : nn::Module {
  std::vector<nn::Conv2d> convs;         // two, the residuals of four blocks, the last
  std::vector<nn::BatchNorm2d> norms;    // two, three of each block
  std::vector<SeparableConv> separable;  // two of each block
  MiniXception() {
    convs.push_back({1, 8, 3, {.bias = false}});
    convs.push_back({8, 8, 3, {.bias = false}});
    for (int i = 0; i < 2; ++i) norms.emplace_back(8, kKerasNorm);
    int in = 8;
    for (const int out : {16, 32, 64, 128}) {
      convs.push_back({in, out, 1, {.stride = 2, .bias = false}});
      separable.push_back({in, out});
      separable.push_back({out, out});
      for (int i = 0; i < 3; ++i) norms.emplace_back(out, kKerasNorm);
      in = out;
    }
    convs.push_back({in, 7, 3, {.padding = 1}});
  }
  Value forward(Value x) override {
    for (std::size_t i = 0; i < 2; ++i) x = relu(norms[i](convs[i](x)));
    for (std::size_t k = 0; k < 4; ++k) {
      const Value residual = norms[2 + 3 * k](convs[2 + k](x));
      const Value inner = relu(norms[3 + 3 * k](separable[2 * k](x)));
      x = same_pool(norms[4 + 3 * k](separable[2 * k + 1](inner))) + residual;
    }
    return softmax(mean(convs.back()(x), {2, 3}), 1);
  }
  Children children() override {
    Children all;
    const auto add = [&](const char* kind, auto& layers) {
      for (std::size_t i = 0; i < layers.size(); ++i) all.push_back({kind + std::to_string(i + 1), &layers[i]});
    };
    add("conv2d_", convs);
    add("batch_normalization_", norms);
    add("separable_conv2d_", separable);
    return all;
  }

 private:
  /// 3x3 with stride 2 and TensorFlow's padding "same": the odd pixel of padding is behind the image.
  static Value same_pool(Value x) {
    const std::int64_t size = x.shape()[-1], total = size % 2 == 0 ? 1 : 2, before = total / 2, after = total - before;
    x = pad(x, {0, 0, before, before}, {0, 0, after, after}, -1e30F);
    return max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}});
  }
};

template <class Network>
void check_network_of(const std::string& name, Network network) {
  const auto path = model_file(name);
  if (!path) return;
  INFO(name);
  const nlohmann::json recorded = golden("weights_networks.json").at(name);
  std::vector<std::int64_t> dims = recorded.at("input").get<std::vector<std::int64_t>>();
  dims.insert(dims.begin(), 2);
  Tensor input(DType::f32, Shape(dims));
  draw_uniformly(input.values<float>(), "golden.input", -1, 1);
  Graph graph;
  graph.set_training(false);
  const Value y = network(graph.input("x", input.spec()));
  const weights::Loaded loaded = weights::load(*path, weights::wanted_of(graph));
  const auto expected = recorded.at("outputs").get<std::vector<float>>();
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, {y}, variables);
    for (const auto& [tensor_name, tensor] : loaded.tensors) variables->write(tensor_name, tensor);
    program.write("x", input);
    program.run();
    const Tensor outputs = program.read(y);
    const auto got = outputs.values<float>();
    const std::size_t step = std::max<std::size_t>(1, got.size() / 24);
    std::vector<float> thinned;
    for (std::size_t i = 0; i < got.size() && thinned.size() < expected.size(); i += step) thinned.push_back(got[i]);
    CHECK(difference(thinned, expected) < 1e-4);
  }
}

}  // namespace

TEST_CASE("published weights give the outputs that PyTorch and Keras compute", "[weights]") {
  SECTION("pitch") { check_network_of("crepe_tiny.pth", Crepe{}); }
  SECTION("faces") {
    check_network_of("pnet.pt", Mtcnn{{{10, 3, 2}, {16, 3}, {32, 3}}, {0, 0}, {2, 4}});
    check_network_of("rnet.pt", Mtcnn{{{28, 3, 3}, {48, 3, 3}, {64, 2}}, {576, 128}, {2, 4}});
    check_network_of("onet.pt", Mtcnn{{{32, 3, 3}, {64, 3, 3}, {64, 3, 2}, {128, 2}}, {1152, 256}, {2, 4, 10}});
  }
  SECTION("distance of images") {
    check_network_of("lpips_alex.pth", LpipsHeads{{64, 192, 384, 256, 256}});
    check_network_of("lpips_squeeze.pth", LpipsHeads{{64, 128, 256, 384, 384, 512, 512}});
  }
  SECTION("emotions") {
    if (has_hdf5_reader()) check_network_of("fer_emotion.hdf5", MiniXception{});
  }
}
