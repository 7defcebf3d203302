// What callbacks may do with the training that they hear of: stop it, and use its trainer.
#include <cmath>
#include <functional>

#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Calls what it is given, where it is given something.
struct Doing : Callback {
  std::function<void(TrainingControl&)> begin, step, epoch, end;
  void on_begin(TrainingControl& training) override {
    if (begin) begin(training);
  }
  void on_step(TrainingControl& training, const StepReport& /*report*/) override {
    if (step) step(training);
  }
  void on_epoch(TrainingControl& training, const EpochReport& /*report*/) override {
    if (epoch) epoch(training);
  }
  void on_end(TrainingControl& training, const History& /*history*/) override {
    if (end) end(training);
  }
};

FitOptions options_with(const std::shared_ptr<Callback>& callback) {
  return {.epochs = 3, .batch = 8, .callbacks = {callback}, .report_every = 1};
}

}  // namespace

TEST_CASE("a callback stops the training, which may go on later", "[train]") {
  const Dataset data = small_data(50);  // 7 batches
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer whole = small_trainer(device);
    whole.fit(data, {.epochs = 3, .batch = 8});
    const auto stopped_and_resumed = [&](const std::shared_ptr<Doing>& callback, std::int64_t steps,
                                         std::size_t epochs) {
      Trainer trainer = small_trainer(device);
      const History history = trainer.fit(data, options_with(callback));
      CHECK(history.end == History::End::stopped);
      CHECK(history.epochs.size() == epochs);
      CHECK(trainer.steps_done() == steps);
      trainer.fit(data, {.epochs = 3, .batch = 8});
      CHECK(bytes_of(trainer) == bytes_of(whole));
    };
    const auto at = [](std::int64_t steps) {
      return [steps](TrainingControl& training) {
        if (training.trainer().steps_done() == steps) training.stop();
      };
    };
    const auto callback = std::make_shared<Doing>();
    callback->begin = at(0);
    stopped_and_resumed(callback, 0, 0);
    callback->begin = {};
    callback->step = at(10);
    stopped_and_resumed(callback, 10, 1);
    callback->step = {};
    callback->epoch = at(14);
    stopped_and_resumed(callback, 14, 2);
  }
}

TEST_CASE("a stop after the last epoch stops nothing", "[train]") {
  Trainer trainer = small_trainer(devices().front());
  const auto callback = std::make_shared<Doing>();
  callback->epoch = [](TrainingControl& training) {
    if (training.trainer().epochs_done() == 3) training.stop();
  };
  CHECK(trainer.fit(small_data(50), options_with(callback)).end == History::End::finished);
}

TEST_CASE("callbacks evaluate, predict and save without a trace in the training", "[train]") {
  const TemporaryFolder folder;
  const Dataset data = small_data(50);
  std::vector<Dataset> others;  // more than a trainer keeps on the device
  for (std::uint64_t seed = 1; seed <= 6; ++seed) others.push_back(small_data(20, seed));
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      for (const double ema : {0.0, 0.9}) {
        INFO(device->info().id << ", resident " << resident << ", average " << ema);
        const TrainerOptions options{.seed = 4, .ema_decay = ema, .resident_fraction = resident};
        Trainer alone = small_trainer(device, options);
        const History expected = alone.fit(data, {.epochs = 3, .batch = 8});
        Trainer trainer = small_trainer(device, options);
        const auto callback = std::make_shared<Doing>();
        double last_loss = 0;
        const auto use = [&](TrainingControl& training) {
          for (const Dataset& other : others) {
            const Metrics metrics = training.trainer().evaluate(other, {.batch = 6});
            last_loss = metrics.loss;
          }
          CHECK(training.trainer().predict(data.features).shape() == Shape{50, 3});
          training.trainer().save(folder / "weights.safetensors");
          training.trainer().save_checkpoint(folder / "checkpoint");
        };
        callback->begin = callback->step = callback->epoch = callback->end = use;
        const History history = trainer.fit(data, options_with(callback));
        CHECK(bytes_of(trainer) == bytes_of(alone));
        CHECK(history.epochs.back().loss == expected.epochs.back().loss);
        CHECK(last_loss == alone.evaluate(others.back(), {.batch = 6}).loss);
      }
    }
  }
}

TEST_CASE("a checkpoint that a callback writes within an epoch is gone on from", "[train]") {
  const TemporaryFolder folder;
  const Dataset data = small_data(50);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer = small_trainer(device);
    const auto callback = std::make_shared<Doing>();
    callback->step = [&](TrainingControl& training) {
      if (training.trainer().steps_done() == 9) training.trainer().save_checkpoint(folder / "checkpoint");
    };
    trainer.fit(data, options_with(callback));
    Trainer resumed = small_trainer(device);
    resumed.resume(folder / "checkpoint");
    resumed.fit(data, {.epochs = 3, .batch = 8});
    CHECK(bytes_of(resumed) == bytes_of(trainer));
  }
}

TEST_CASE("fit within a fit is refused", "[train]") {
  const Dataset data = small_data(50);
  Trainer trainer = small_trainer(devices().front());
  const auto callback = std::make_shared<Doing>();
  const auto nested = [&](TrainingControl& training) {
    CHECK_THROWS_AS(training.trainer().fit(data), ArgumentError);
    Trainer another = small_trainer(devices().front());
    CHECK(another.fit(data).end == History::End::finished);
  };
  callback->begin = callback->epoch = callback->end = nested;
  CHECK(trainer.fit(data, options_with(callback)).end == History::End::finished);
  CHECK(trainer.epochs_done() == 3);

  callback->epoch = [&](TrainingControl& training) { training.trainer().fit(data); };
  CHECK_THROWS_AS(trainer.fit(data, options_with(callback)), ArgumentError);
  CHECK(trainer.fit(data).end == History::End::finished);
}

TEST_CASE("a step that fails is looked into after callbacks evaluated many sets", "[train]") {
  Dataset data = small_data(50);
  data.features = Tensor::of<float>(data.features.shape(), data.features.values<float>());  // not that of others
  data.features.values<float>().back() = INFINITY;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto message_of = [&](const std::shared_ptr<Callback>& callback) -> std::string {
      FitOptions options = options_with(callback);
      options.shuffle = false;  // it fails in the last step of the first epoch
      try {
        small_trainer(device).fit(data, options);
      } catch (const NonFinite& error) {
        return error.what();
      }
      return "none";
    };
    const auto callback = std::make_shared<Doing>();
    const std::string expected = message_of(callback);
    CHECK_THAT(expected, contains("step 7"));
    callback->step = [](TrainingControl& training) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {  // more than a trainer keeps on the device
        static_cast<void>(training.trainer().evaluate(small_data(20, seed)));
      }
    };
    CHECK(message_of(callback) == expected);
  }
}
