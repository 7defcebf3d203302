// Layers of one's own: a block made of other layers, one with a parameter and a formula of its own, and a loss. None of
// it names a device; gradients come from the operators, formulas are fused on every device.
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

/// x + F(x), with F two convolutions.
struct Residual : nn::Module {
  nn::Conv2d a, b;
  explicit Residual(int channels)
      : a{channels, channels, 3, {.padding = 1}}, b{channels, channels, 3, {.padding = 1}} {}
  Value forward(Value x) override { return relu(x + b(relu(a(x)))); }
  Children children() override { return {{"a", &a}, {"b", &b}}; }  // parameters "a.weight", …
};

/// x·σ(βx) with a learned β for each channel (Ramachandran et al., "Searching for Activation Functions", 2017).
struct Swish : nn::Module {
  VariablePtr beta;
  explicit Swish(int channels) : beta{make_parameter(Shape{channels, 1, 1}, nn::init::constant(1))} {}
  Value forward(Value x) override {
    const Scalar value = scalar::input(0), slope = scalar::input(1);
    return pointwise("swish", {x, parameter(x.graph(), beta, "beta")}, value * scalar::sigmoid(slope * value));
  }
};

/// Cross-entropy and a little of the squared size of the outputs.
Value modest_cross_entropy(Value logits, Value labels) {
  return loss::cross_entropy(logits, labels) + 0.001F * mean(square(logits));
}

int main() try {
  nn::Sequential net{nn::Conv2d{1, 8, 3, {.stride = 2, .padding = 1}},  // (N, 8, 14, 14)
                     Swish{8}, Residual{8}, nn::Flatten{}, nn::Linear{8 * 14 * 14, 10}};
  const auto device = Device::open();
  Trainer trainer{net, modest_cross_entropy, optim::AdamW{.lr = 1e-3}, device};

  const Dataset data = data::synthetic(Shape{1, 28, 28}, 10, 2000);
  for (const EpochReport& epoch : trainer.fit(data, {.epochs = 3}).epochs) {
    std::cout << "epoch " << epoch.epoch << ": loss " << epoch.loss << '\n';
  }
  std::cout << "accuracy " << trainer.evaluate(data).accuracy.value() << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
