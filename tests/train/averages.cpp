// Averaged weights of networks with batch norm: their running statistics are averaged with the same decay.
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Trainer trainer_with_statistics(const DevicePtr& device, double ema_decay) {
  return Trainer{image_net(),
                 loss::cross_entropy,
                 optim::Sgd{.lr = 0.1, .momentum = 0.9},
                 device,
                 {.seed = 4, .ema_decay = ema_decay}};
}

Dataset images() { return data::synthetic(Shape{1, 6, 6}, 3, 40); }

std::vector<float> numbers(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

std::vector<float> numbers(const Trainer& trainer, const std::string& name) {
  return numbers(trainer.variables()->read(name));
}

void check_near(const std::vector<float>& numbers, const std::vector<float>& expected) {
  REQUIRE(numbers.size() == expected.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
}

/// Half of each.
std::vector<float> halves(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> mean;
  for (std::size_t i = 0; i < a.size(); ++i) mean.push_back(0.5F * a[i] + 0.5F * b[i]);
  return mean;
}

}  // namespace

TEST_CASE("averaged weights have averaged running statistics", "[train]") {
  const Dataset data = images();
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer plain = trainer_with_statistics(device, 0), averaged = trainer_with_statistics(device, 0.5);
    std::vector<float> expected;
    for (int step = 0; step < 8; ++step) {
      const FitOptions one{.epochs = 100, .batch = 10, .max_steps = 1};
      plain.fit(data, one);
      averaged.fit(data, one);
      const std::vector<float> now = numbers(plain, "1.running_mean");
      expected = step == 0 ? now : halves(expected, now);
    }
    CHECK(numbers(plain, "1.running_mean") == numbers(averaged, "1.running_mean"));  // the training's own
    check_near(numbers(averaged, "ema.1.running_mean"), expected);
    averaged.save(folder / "net");
    const Tensor saved = io::read_safetensors(folder / "net").tensors.at("1.running_mean");
    CHECK(numbers(saved) == numbers(averaged, "ema.1.running_mean"));
    Trainer reader = trainer_with_statistics(device, 0);
    reader.load(folder / "net");
    CHECK(reader.evaluate(data).loss == averaged.evaluate(data).loss);
  }
}

TEST_CASE("averaged running statistics go on after a stop with the same bits", "[train]") {
  const Dataset data = images();
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    FitOptions options{.epochs = 3, .batch = 10};
    options.validate = data;
    Trainer whole = trainer_with_statistics(device, 0.8);
    whole.fit(data, options);
    FitOptions part = options;
    part.checkpoint = folder / "run";
    part.max_steps = 6;
    Trainer stopped = trainer_with_statistics(device, 0.8);
    stopped.fit(data, part);
    Trainer resumed = trainer_with_statistics(device, 0.8);
    resumed.resume(folder / "run");
    CHECK(resumed.evaluate(data).loss == stopped.evaluate(data).loss);
    resumed.fit(data, options);
    CHECK(bytes_of(resumed) == bytes_of(whole));
    CHECK(resumed.evaluate(data).loss == whole.evaluate(data).loss);
  }
}

TEST_CASE("averages of running statistics that a checkpoint lacks begin as these are", "[train]") {
  const Dataset data = images();
  const TemporaryFolder folder;
  const DevicePtr& device = devices().front();
  const bool evaluates_first = GENERATE(true, false);
  Trainer trainer = trainer_with_statistics(device, 0.5);
  trainer.fit(data, {.epochs = 1, .batch = 40});
  trainer.fit(data, {.epochs = 1, .batch = 40});
  trainer.save_checkpoint(folder / "run");
  io::Checkpoint old = io::load_checkpoint(folder / "run");
  const std::vector<float> before = numbers(old.tensors.at("1.running_mean"));
  REQUIRE(std::erase_if(old.tensors, [](const auto& one) { return one.first.starts_with("ema.1.running_"); }) == 2);
  io::save_checkpoint(folder / "run", old.tensors, old.info);

  Trainer resumed = trainer_with_statistics(device, 0.5);
  resumed.resume(folder / "run");
  if (evaluates_first) CHECK(std::isfinite(resumed.evaluate(data).loss));
  resumed.fit(data, {.epochs = 1, .batch = 40});  // one update
  check_near(numbers(resumed, "ema.1.running_mean"), halves(before, numbers(resumed, "1.running_mean")));
  resumed.save(folder / "net");
  Trainer reader = trainer_with_statistics(device, 0);
  reader.load(folder / "net");
  CHECK(reader.evaluate(data).loss == resumed.evaluate(data).loss);

  old.tensors.erase("ema.0.weight");  // an average of a weight does not begin anew
  io::save_checkpoint(folder / "run", old.tensors, old.info);
  Trainer refused = trainer_with_statistics(device, 0.5);
  refused.resume(folder / "run");
  CHECK_THROWS_AS(refused.fit(data, {.epochs = 1, .batch = 40}), FormatError);
}
