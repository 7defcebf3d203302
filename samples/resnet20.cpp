// ResNet-20 on Fashion-MNIST with augmentation and a one-cycle learning rate.
//   ./resnet20 [device] [epochs] [samples] [precision] [seed]   25 epochs of all 60,000 samples in fp32, seed 1, unless
//   given; a tenth of the samples is held out to validate on
// Expected: see the table in README.md.
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

/// The zoo's network is for colour; a grey picture is shown to it three times.
struct Grey : nn::Module {
  std::shared_ptr<nn::Module> net = models::make("resnet20");
  Value forward(Value x) override { return (*net)(concat({x, x, x}, 1)); }
  Children children() override { return {{"net", net.get()}}; }
};

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 25;
  Dataset samples = data::fashion_mnist("train");
  if (argc > 3) samples = data::slice(samples, 0, std::stoi(argv[3]));
  const Precision precision = precision_of(argc > 4 ? argv[4] : "fp32");
  const std::uint64_t seed = argc > 5 ? std::stoull(argv[5]) : 1;
  Dataset test = data::fashion_mnist("test");
  for (Dataset* set : {&samples, &test}) set->shift = -0.286F;  // zero is the mean grey
  const auto [train, held_out] = data::split(samples, samples.size() / 10);

  constexpr std::int64_t kBatch = 128;
  const std::int64_t steps = epochs * ((train.size() + kBatch - 1) / kBatch);
  const optim::Sgd sgd{.lr = 0.2, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  Trainer trainer{
      Grey{}, loss::CrossEntropy{.label_smoothing = 0.1F}, sgd, device, {.seed = seed, .precision = precision}};
  trainer.fit(train, {.epochs = epochs,
                      .batch = kBatch,
                      .validate = held_out,
                      .schedule = optim::schedule::one_cycle(steps),
                      .callbacks = {std::make_shared<ProgressPrinter>(std::cerr)},
                      .augmentation = data::in_order({data::random_crop(1, 2), data::random_horizontal_flip(1)})});
  std::cout << "accuracy " << 100 * trainer.evaluate(test).accuracy.value() << " %\n";
  trainer.save("resnet20.safetensors");
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
