// Trainer: learns, takes any batch, says what is wrong with its data, goes on where it stopped, keeps good weights.
#include "concord/train/trainer.hpp"

#include <cmath>

#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a trainer learns, and tells its metrics", "[train]") {
  const Dataset data = small_data();
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer = small_trainer(device);
    const Metrics before = trainer.evaluate(data);
    const History history = trainer.fit(data, {.epochs = 10, .batch = 16, .validate = data});
    REQUIRE(history.epochs.size() == 10);
    CHECK(history.end == History::End::finished);
    CHECK(history.epochs.back().loss < 0.5 * history.epochs.front().loss);
    CHECK(history.epochs.back().steps == 70);  // six full batches and one of four samples
    CHECK(trainer.steps_done() == 70);
    const Metrics after = trainer.evaluate(data, {.batch = 7, .k = 2});
    CHECK(after.loss < before.loss);
    CHECK(after.accuracy.value() > 0.8);
    CHECK(after.top_k.value() >= after.accuracy.value());
    CHECK(after.samples == 100);
    // The way the batches are cut does not change what is measured.
    CHECK(after.loss == Approx(history.epochs.back().validation->loss).epsilon(1e-5));
    CHECK(after.accuracy.value() == history.epochs.back().validation->accuracy.value());
  }
}

TEST_CASE("the loss of an epoch is the mean over its samples", "[train]") {
  const Dataset data = small_data(10);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{nn::Sequential{nn::Linear{6, 3}}, loss::cross_entropy, optim::Sgd{.lr = 0}, device};
    const double loss = trainer.fit(data, {.batch = 4}).epochs.at(0).loss;
    CHECK(loss == Approx(trainer.evaluate(data).loss).epsilon(1e-5));
    const double whole = trainer.fit(data, {.batch = 1000}).epochs.at(0).loss;  // all of them at once
    CHECK(whole == Approx(loss).epsilon(1e-5));
  }
}

TEST_CASE("predictions are in the order of the samples", "[train]") {
  const Dataset data = small_data(11);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer = small_trainer(device);
    const Tensor whole = trainer.predict(data, 256), parts = trainer.predict(data.features, 4);
    REQUIRE(whole.shape() == Shape{11, 3});
    for (std::size_t i = 0; i < whole.values<float>().size(); ++i) {
      CHECK(parts.values<float>()[i] == Approx(static_cast<double>(whole.values<float>()[i])).margin(1e-6));
    }
    const Tensor last = trainer.predict(data::slice(data, 10, 1));
    CHECK(last.values<float>()[0] == Approx(static_cast<double>(whole.values<float>()[30])).margin(1e-6));
  }
}

TEST_CASE("mistakes in data and options are told before any work", "[train]") {
  const DevicePtr& device = devices().front();
  Trainer trainer = small_trainer(device);
  const Dataset data = small_data();
  CHECK_THROWS_AS(trainer.fit(data, {.batch = 0}), ArgumentError);
  CHECK_THROWS_AS(trainer.fit(data, {.epochs = -1}), ArgumentError);
  CHECK_THROWS_AS(trainer.fit(Dataset{}), ArgumentError);
  CHECK_THROWS_AS(trainer.evaluate(Dataset{}), ArgumentError);
  CHECK_THROWS_AS(trainer.predict(Dataset{}), ArgumentError);
  CHECK_THROWS_AS(trainer.fit(data, {.early_stopping = EarlyStopping{}}), ArgumentError);

  CHECK_THROWS_WITH(trainer.fit(data, {.callbacks = {nullptr}}), contains("callbacks is null"));
  Dataset wrong_label = data;
  wrong_label.labels = data.labels.clone();
  wrong_label.labels.values<std::int32_t>()[5] = 3;
  CHECK_THROWS_WITH(trainer.fit(wrong_label), contains("label 3 of sample 5"));

  const Dataset many_classes = data::synthetic(Shape{6}, 7, 20);
  CHECK_THROWS_WITH(trainer.fit(many_classes), contains("labels up to 6"));
  CHECK_THROWS_AS(trainer.evaluate(many_classes), ArgumentError);

  const Dataset wide = data::synthetic(Shape{7}, 3, 20);
  CHECK_THROWS_WITH(trainer.fit(wide), contains("0/linear"));
  CHECK_THROWS_AS(trainer.fit(data, {.validate = wide}), ShapeError);
  CHECK(trainer.steps_done() == 0);
  CHECK(trainer.variables()->names().empty());
}

TEST_CASE("streamed data trains to the same bits as data on the device", "[train]") {
  const Dataset data = small_data(50);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer resident = small_trainer(device);
    Trainer streamed = small_trainer(device, {.seed = 4, .resident_fraction = 0});
    const History a = resident.fit(data, {.epochs = 3, .batch = 8, .validate = data});
    const History b = streamed.fit(data, {.epochs = 3, .batch = 8, .validate = data});
    CHECK(bytes_of(resident) == bytes_of(streamed));
    CHECK(a.epochs.back().loss == b.epochs.back().loss);
    CHECK(a.epochs.back().validation->loss == b.epochs.back().validation->loss);
  }
}

TEST_CASE("the same seed gives the same bits, another seed others", "[train]") {
  const Dataset data = small_data(40);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto weights_after = [&](std::uint64_t seed) {
      Trainer trainer = small_trainer(device, {.seed = seed});
      trainer.fit(data, {.epochs = 2, .batch = 16});
      return bytes_of(trainer);
    };
    const auto once = weights_after(1);
    CHECK(once == weights_after(1));
    CHECK(once != weights_after(2));
  }
}

TEST_CASE("a loss that is not finite ends the training and names its cause", "[train]") {
  struct Logarithm : nn::Module {
    nn::Linear layer{6, 3};
    Value forward(Value x) override { return layer(log(x)); }
    Children children() override { return {{"layer", &layer}}; }
  };
  Dataset data = small_data(40);
  data.features = data.features.clone();
  for (float& v : data.features.values<float>()) v = std::abs(v) + 0.1F;
  data.features.values<float>()[6 * 25] = -1;  // sample 25: batch 3 of 10 without shuffling
  for (const DevicePtr& device : devices()) {
    const double resident = GENERATE(0.4, 0.0);
    INFO(device->info().id << ", resident " << resident);
    const FitOptions options{.epochs = 3, .batch = 10, .shuffle = false};
    Trainer good{Logarithm{}, loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.resident_fraction = resident}};
    FitOptions two_steps = options;
    two_steps.max_steps = 2;
    good.fit(data, two_steps);
    Trainer trainer{Logarithm{}, loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.resident_fraction = resident}};
    const std::string message = message_of<NonFinite>([&] { trainer.fit(data, options); });
    INFO(message);
    CHECK(contains(message, "step 3"));
    CHECK(contains(message, "'log'"));
    CHECK(trainer.steps_done() == 2);
    auto kept = bytes_of(trainer), expected = bytes_of(good);
    for (auto* state : {&kept, &expected}) state->erase(optim::kOk);
    CHECK(kept == expected);
    CHECK_THROWS_AS(trainer.fit(data, options), NonFinite);  // it stays ended
    const TemporaryFolder folder;
    CHECK_NOTHROW(trainer.save(folder / "good.safetensors"));
  }
}

TEST_CASE("early stopping puts the best weights back", "[train]") {
  const Dataset data = small_data(60), other = small_data(60, 1);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.05}, device, {.seed = 2}};
    // The other set's classes lie elsewhere: what is learned makes it worse.
    const History history = trainer.fit(
        data, {.epochs = 50, .batch = 20, .validate = other, .early_stopping = EarlyStopping{.patience = 3}});
    CHECK(history.end == History::End::early);
    REQUIRE(history.best_epoch >= 1);
    CHECK(static_cast<std::int64_t>(history.epochs.size()) == history.best_epoch + 3);
    const double best = history.epochs[static_cast<std::size_t>(history.best_epoch - 1)].validation->loss;
    CHECK(trainer.evaluate(other).loss == Approx(best).epsilon(1e-6));
  }
}

TEST_CASE("many trainings upload a data set once", "[train]") {
  const Dataset data = small_data(1000);
  const DevicePtr& device = devices().front();
  for (int i = 0; i < 3; ++i) {
    Trainer trainer = small_trainer(device);
    trainer.fit(data, {.batch = 100, .max_steps = 1});
    CHECK(data.device_copies->copies.size() == 1);
  }
}

TEST_CASE("targets may be numbers, and an augmentation changes what is seen", "[train]") {
  Tensor x(DType::f32, Shape{64, 2}), y(DType::f32, Shape{64, 1});
  for (std::size_t i = 0; i < 64; ++i) {
    x.values<float>()[2 * i] = static_cast<float>(i % 8) / 8;
    x.values<float>()[2 * i + 1] = static_cast<float>(i / 8) / 8;
    y.values<float>()[i] = x.values<float>()[2 * i] - 2 * x.values<float>()[2 * i + 1];
  }
  const Dataset data = data::from_arrays(x, y);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{nn::Sequential{nn::Linear{2, 1}}, loss::mse, optim::Sgd{.lr = 0.3}, device};
    trainer.fit(data, {.epochs = 60, .batch = 16});
    const Metrics metrics = trainer.evaluate(data);
    CHECK(metrics.loss < 1e-4);
    CHECK_FALSE(metrics.accuracy);

    Trainer blind{nn::Sequential{nn::Linear{2, 1}}, loss::mse, optim::Sgd{.lr = 0.3}, device};
    blind.fit(data,
              {.epochs = 60, .batch = 16, .augmentation = [](std::span<std::byte> features, const data::SampleInfo&) {
                 std::ranges::fill(features, std::byte{0});
               }});
    CHECK(blind.evaluate(data).loss > 0.1);
  }
}

TEST_CASE("numbers of a sequence are samples, with a label at every place", "[train]") {
  // The next number is the one before, plus one: a table of 5 rows can learn it.
  struct Table : nn::Module {
    VariablePtr rows = make_parameter(Shape{5, 5}, nn::init::constant(0));
    Value forward(Value x) override { return gather(parameter(x.graph(), rows, "rows"), x); }
  };
  Tensor x(DType::i32, Shape{40, 4}), y(DType::i32, Shape{40, 4});
  for (int i = 0; i < 160; ++i) {
    x.values<std::int32_t>()[static_cast<std::size_t>(i)] = (i / 4 + i) % 5;
    y.values<std::int32_t>()[static_cast<std::size_t>(i)] = (i / 4 + i + 1) % 5;
  }
  const Dataset data = data::from_arrays(x, y);
  const Loss flat = [](Value logits, Value labels) {
    return loss::cross_entropy(reshape(logits, {-1, 5}), reshape(labels, std::vector<std::int64_t>{-1}));
  };
  const double resident = GENERATE(0.4, 0.0);  // or streamed
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id, resident);
    Trainer trainer{Table{}, flat, optim::Adam{.lr = 0.3}, device, {.resident_fraction = resident}};
    trainer.fit(data, {.epochs = 8, .batch = 16});
    const Metrics metrics = trainer.evaluate(data);
    CHECK(metrics.accuracy.value() == 1.0);
    CHECK(metrics.loss < 0.2);
    CHECK(trainer.predict(data).shape() == Shape{40, 4, 5});
  }
  Trainer wrong{Table{}, flat, optim::Adam{}, devices().front()};
  CHECK_THROWS_WITH(wrong.fit(data::from_arrays(x, Tensor(DType::i32, Shape{40, 3}), 5)), contains("[40, 3]"));
}
