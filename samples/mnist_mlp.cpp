// A perceptron that reads handwritten digits. Needs the MNIST files, for example in ./mnist:
//   CONCORD_DATA_DIR=. ./mnist_mlp
// Without them it trains on the pictures of clothing that Debian has as dataset-fashion-mnist.
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

struct Images {
  Dataset train, test;
};

/// Both sets are of the same pictures.
Images images() {
  try {
    return {data::mnist("train"), data::mnist("test")};
  } catch (const IoError&) {
    return {data::fashion_mnist("train"), data::fashion_mnist("test")};
  }
}

int main() try {
  const auto device = Device::open();
  const auto [train, test] = images();
  std::cout << "training on " << device->info().name << ": " << train.name << '\n';

  nn::Sequential net{nn::Flatten{}, nn::Linear{784, 1000}, nn::ReLU{}, nn::Linear{1000, 10}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-3}, device};
  trainer.fit(train, {.epochs = 1, .batch = 64});

  std::cout << "accuracy " << trainer.evaluate(test).accuracy.value() << '\n';
  trainer.save("mnist_mlp.safetensors");
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
