// The program of README.md.
// [program]
#include <concord/concord.hpp>
#include <iostream>
using namespace concord;

struct Residual : nn::Module {
  nn::Conv2d a, b;
  explicit Residual(int c) : a{c, c, 3, {.padding = 1}}, b{c, c, 3, {.padding = 1}} {}
  Value forward(Value x) override { return relu(x + b(relu(a(x)))); }
};

int main() {
  nn::Sequential net{nn::Conv2d{1, 16, 3, {.stride = 2, .padding = 1}}, nn::ReLU{}, Residual{16}, nn::Flatten{},
                     nn::Linear{16 * 14 * 14, 10}};
  Trainer trainer{net, loss::cross_entropy, optim::AdamW{.lr = 1e-3}, Device::open("auto")};
  const auto [train, held_out] = data::split(data::fashion_mnist("train"), 6000);
  trainer.fit(train, {.epochs = 1, .validate = held_out, .callbacks = {std::make_shared<ProgressPrinter>(std::cerr)}});
  std::cout << "test accuracy " << trainer.evaluate(data::fashion_mnist("test")).accuracy.value() << '\n';
  trainer.save("net.safetensors");
}
// [end]
