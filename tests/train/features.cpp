// Accumulated gradients, averaged weights, groups and plateau schedules in a Trainer, also over a stop in between.
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Without dropout: the same whatever the batches are.
Trainer plain_trainer(const DevicePtr& device, const TrainerOptions& options) {
  return Trainer{nn::Sequential{nn::Linear{6, 16}, nn::Tanh{}, nn::Linear{16, 3}}, loss::cross_entropy,
                 optim::Adam{.lr = 0.01}, device, options};
}

double largest_difference(const Trainer& a, const Trainer& b, const std::string& name) {
  const Tensor x = a.variables()->read(name), y = b.variables()->read(name);
  double most = 0;
  for (std::size_t i = 0; i < x.values<float>().size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(x.values<float>()[i] - y.values<float>()[i])));
  }
  return most;
}

/// Messages logged while it lives.
struct Listener {
  Listener() {
    set_log([this](LogLevel, std::string_view message) { messages += std::string(message) + '\n'; });
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { set_log({}); }
  std::string messages;
};

}  // namespace

TEST_CASE("batches accumulated to an update train as one large batch", "[train]") {
  const Dataset data = small_data(60);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer large = plain_trainer(device, {.seed = 4});
    large.fit(data, {.epochs = 4, .batch = 20, .shuffle = false});
    Trainer small = plain_trainer(device, {.seed = 4, .accumulate = 4});
    small.fit(data, {.epochs = 4, .batch = 5, .shuffle = false});
    CHECK(small.steps_done() == 48);
    CHECK(small.variables()->read(optim::kStep).values<std::int32_t>()[0] == 12);
    for (const char* name : {"0.weight", "0.bias", "2.weight", "2.bias"}) {
      CHECK(largest_difference(large, small, name) < 1e-5);
    }
  }
}

TEST_CASE("accumulated gradients and averages go on after a stop with the same bits", "[train]") {
  const Dataset data = small_data(50);
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  const TrainerOptions trainer_options{
      .seed = 4,
      .groups = {{.match = optim::vectors(), .rate_factor = 0.5}, {.match = optim::named("3.weight"), .frozen = true}},
      .accumulate = 4,
      .ema_decay = 0.8};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    FitOptions options{.epochs = 4, .batch = 10, .validate = data};
    options.schedule = optim::schedule::plateau({.factor = 0.5, .patience = 0, .threshold = 100, .relative = false});
    Trainer whole = small_trainer(device, trainer_options);
    const History history = whole.fit(data, options);
    CHECK(history.epochs[1].rate == Approx(0.01));
    CHECK(history.epochs[2].rate == Approx(0.005));
    CHECK(history.epochs[3].rate == Approx(0.0025));

    FitOptions first_part = options;
    first_part.checkpoint = path;
    first_part.max_steps = 13;
    Trainer stopped = small_trainer(device, trainer_options);
    stopped.fit(data, first_part);
    Trainer resumed = small_trainer(device, trainer_options);
    resumed.resume(path);
    CHECK(resumed.evaluate(data).loss == stopped.evaluate(data).loss);
    resumed.fit(data, options);
    CHECK(bytes_of(resumed) == bytes_of(whole));
    CHECK(!resumed.variables()->contains("ema.3.weight"));
  }
}

TEST_CASE("evaluations use the averaged weights", "[train]") {
  const Dataset data = small_data(50);
  const TemporaryFolder folder;
  const auto path = folder / "net.safetensors";
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer plain = small_trainer(device), averaged = small_trainer(device, {.seed = 4, .ema_decay = 0.95});
    CHECK(averaged.evaluate(data).loss == plain.evaluate(data).loss);  // no average yet
    plain.fit(data, {.epochs = 3, .batch = 10});
    averaged.fit(data, {.epochs = 3, .batch = 10});
    CHECK(largest_difference(plain, averaged, "0.weight") == 0);
    const double loss = averaged.evaluate(data).loss;
    CHECK(loss != plain.evaluate(data).loss);
    averaged.save(path);
    Trainer reader = small_trainer(device);
    reader.load(path);
    CHECK(reader.evaluate(data).loss == loss);
    plain.save(path);
    averaged.load(path);
    CHECK(averaged.evaluate(data).loss == plain.evaluate(data).loss);
  }
}

TEST_CASE("averages that no update has reached yet stand for nothing", "[train]") {
  Dataset data = small_data(10);
  for (float& value : data.features.values<float>()) value *= 1e36F;  // scaled gradients overflow
  const auto trainer = [](double ema_decay) {
    return Trainer{nn::Sequential{nn::Linear{6, 3}},
                   loss::cross_entropy,
                   optim::Sgd{.lr = 1e-3},
                   devices().front(),
                   {.seed = 4, .ema_decay = ema_decay, .precision = Precision::fp16}};
  };
  Trainer plain = trainer(0), averaged = trainer(0.9);
  plain.fit(data, {.epochs = 1, .batch = 10});
  averaged.fit(data, {.epochs = 1, .batch = 10});
  REQUIRE(averaged.variables()->read("optim.step").values<std::int32_t>()[0] == 0);
  CHECK(averaged.evaluate(data).loss == plain.evaluate(data).loss);
}

TEST_CASE("a cycle within few epochs is that of its steps, also over a stop", "[train]") {
  const Dataset data = small_data(50);  // 5 batches, 3 updates an epoch
  const TemporaryFolder folder;
  const DevicePtr& device = devices().front();
  const TrainerOptions accumulating{.seed = 4, .accumulate = 2};
  FitOptions by_epochs{.epochs = 2, .batch = 10}, by_steps = by_epochs;
  by_epochs.schedule = optim::schedule::one_cycle(2, {.unit = optim::Unit::epoch});
  by_steps.schedule = optim::schedule::one_cycle(2 * 3);
  Trainer one = small_trainer(device, accumulating), other = small_trainer(device, accumulating);
  one.fit(data, by_epochs);
  other.fit(data, by_steps);
  CHECK(bytes_of(one) == bytes_of(other));
  for (const std::int64_t steps : {3, 4, 5, 8}) {
    INFO(steps);
    FitOptions part = by_epochs;
    part.max_steps = steps;
    part.checkpoint = folder / "run";
    Trainer stopped = small_trainer(device, accumulating);
    stopped.fit(data, part);
    const Listener listener;
    Trainer resumed = small_trainer(device, accumulating);
    resumed.resume(folder / "run");
    resumed.fit(data, by_epochs);
    CHECK(bytes_of(resumed) == bytes_of(one));
    CHECK_THAT(listener.messages, !contains("--schedule"));
  }
}

TEST_CASE("other settings than the checkpoint's are told", "[train]") {
  const DevicePtr& device = devices().front();
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  FitOptions options{.epochs = 2, .batch = 10, .schedule = optim::schedule::cosine(2), .max_steps = 7};
  options.checkpoint = path;
  Trainer trainer = small_trainer(device, {.clip = {.norm = 5}});
  trainer.fit(small_data(50), options);
  const auto said = [&](const TrainerOptions& trainer_options, const optim::Schedule& schedule) {
    const Listener listener;
    Trainer resumed = small_trainer(device, trainer_options);
    resumed.resume(path);
    FitOptions changed = options;
    changed.schedule = schedule;
    changed.checkpoint.clear();
    resumed.fit(small_data(50), changed);
    return listener.messages;
  };
  CHECK_THAT(said({.clip = {.norm = 5}}, options.schedule), !contains("the training had"));
  CHECK_THAT(said({.clip = {.norm = 1}}, options.schedule), contains("the training had --clip-norm 5; this one has 1"));
  CHECK_THAT(said({.clip = {.norm = 5}}, optim::schedule::cosine(3)),
             contains("cosine(length 2 epochs, end 0)") && contains("cosine(length 3 epochs, end 0)"));
  Trainer other = small_trainer(device, {.accumulate = 2});
  CHECK_THROWS_WITH(other.resume(path), contains("1 batch per update (--accumulate)") && contains("has 2"));
  CHECK_THROWS_AS(small_trainer(device, {.accumulate = 0}), ArgumentError);
  CHECK_THROWS_AS(small_trainer(device).fit(small_data(50), {.schedule = optim::schedule::plateau()}), ArgumentError);
}
