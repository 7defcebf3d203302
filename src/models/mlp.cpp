// A perceptron for samples of any shape: as published for 28x28 grey images, with one hidden layer of a thousand units.
#include "concord/models/networks.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/stateless.hpp"

namespace concord::models {
namespace {

std::shared_ptr<nn::Module> make_mlp(int depth, int width, const Variant& variant) {
  auto net = std::make_shared<nn::Sequential>(nn::Flatten{});
  std::int64_t features = variant.input.elements();
  for (int layer = 0; layer < depth; ++layer) {
    net->push(nn::Linear{features, width}).push(nn::ReLU{});
    features = width;
  }
  net->push(nn::Linear{features, variant.classes});
  return net;
}

Model of_sizes(std::span<const int> sizes) {
  const int depth = sizes[0], width = sizes[1];
  return {"mlp", "perceptron 784-1000-10", Shape{1, 28, 28}, 10, 795010, [depth, width](const Variant& variant) {
            return make_mlp(depth, width, variant);
          }};
}

}  // namespace

Model mlp() { return sizable({{"depth", 1, "hidden layers"}, {"width", 1000, "units in each"}}, of_sizes); }

}  // namespace concord::models
