// The program of docs/guide/first-network.md.
// [program]
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

int main() try {
  // 1. The data: 60,000 grey images of 28x28 pixels, ten classes. A tenth is held out for validation.
  const auto [train, held_out] = data::split(data::fashion_mnist("train"), 6000);

  // 2. The network: an ordinary value. Images are (N, channels, height, width).
  nn::Sequential net{nn::Flatten{}, nn::Linear{784, 128}, nn::ReLU{}, nn::Linear{128, 10}};

  // 3. The device: a GPU if there is one, else the CPU.
  const DevicePtr device = Device::open();
  std::cout << "training on " << device->info().name << '\n';

  // 4. The training: network, loss, optimizer, device.
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-3}, device, {.seed = 1}};
  trainer.fit(
      train,
      {.epochs = 2, .batch = 64, .validate = held_out, .callbacks = {std::make_shared<ProgressPrinter>(std::cerr)}});

  // 5. The result: the accuracy on new images, and the weights in a file.
  const Metrics test = trainer.evaluate(data::fashion_mnist("test"));
  std::cout << "test accuracy " << 100 * test.accuracy.value() << " %\n";
  trainer.save("first.safetensors");
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
// [end]
