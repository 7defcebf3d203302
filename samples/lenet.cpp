// LeNet on Fashion-MNIST: layers, a training that can be watched, weights that PyTorch reads.
//   ./lenet [device] [epochs]        for example: ./lenet opencl:0 5 (one epoch by default)
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 1;
  std::cout << "training on " << device->info().name << '\n';

  nn::Sequential net{nn::Conv2d{1, 20, 5}, nn::ReLU{},         nn::MaxPool2d{2}, nn::Conv2d{20, 50, 5},
                     nn::ReLU{},           nn::MaxPool2d{2},   nn::Flatten{},    nn::Linear{800, 500},
                     nn::ReLU{},           nn::Linear{500, 10}};
  Trainer trainer{net, loss::cross_entropy, optim::Sgd{.lr = 0.01, .momentum = 0.9}, device, {.seed = 1}};

  const auto [train, held_out] = data::split(data::fashion_mnist("train"), 6000);
  trainer.fit(train,
              {.epochs = epochs, .validate = held_out, .callbacks = {std::make_shared<ProgressPrinter>(std::cerr)}});
  trainer.save("lenet.safetensors");

  const Dataset test = data::fashion_mnist("test");
  std::cout << "accuracy " << 100 * trainer.evaluate(test).accuracy.value() << " %\n";

  // Which kinds of clothing are taken for which?
  const Tensor counts = confusion_matrix(trainer.predict(test), test.labels);
  for (int label = 0; label < test.classes; ++label) {
    for (int predicted = 0; predicted < test.classes; ++predicted) {
      std::cout << counts.values<std::int32_t>()[static_cast<std::size_t>(label * test.classes + predicted)] << '\t';
    }
    std::cout << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
