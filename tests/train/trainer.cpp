// Trainer: learns, takes any batch, says what is wrong with its data, goes on where it stopped, keeps good weights.
#include "concord/train/trainer.hpp"

#include <cmath>

#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

nn::Sequential small_net(std::int64_t classes = 3) {
  return nn::Sequential{nn::Linear{6, 16}, nn::ReLU{}, nn::Dropout{0.1F}, nn::Linear{16, classes}};
}

Trainer small_trainer(const DevicePtr& device, const TrainerOptions& options = {.seed = 4}) {
  return Trainer{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, options};
}

Dataset small_data(std::int64_t samples = 100, std::uint64_t seed = 0) {
  return data::synthetic(Shape{6}, 3, samples, seed);
}

/// A network with two-dimensional layers and running statistics.
nn::Sequential image_net() {
  return nn::Sequential{nn::Conv2d{1, 4, 3, {.padding = 1}},
                        nn::BatchNorm2d{4},
                        nn::ReLU{},
                        nn::GlobalAvgPool2d{},
                        nn::Flatten{},
                        nn::Linear{4, 3}};
}

std::map<std::string, std::vector<std::byte>> bytes_of(const Trainer& trainer) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const auto& [name, tensor] : trainer.variables()->read_all()) {
    if (name.starts_with("data.") || name.starts_with("eval.")) continue;
    all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

}  // namespace

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

TEST_CASE("a training that was stopped and resumed has the bits of one that was not", "[train]") {
  const Dataset data = small_data(50);
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  for (const DevicePtr& device : devices()) {
    const std::int64_t stop_after = GENERATE(as<std::int64_t>{}, 7, 10);  // within an epoch; at its end
    INFO(device->info().id << ", stopped after " << stop_after << " steps");
    FitOptions options{.epochs = 4, .batch = 10, .schedule = optim::schedule::cosine(20, 0, optim::Unit::step)};
    Trainer whole = small_trainer(device);
    whole.fit(data, options);

    FitOptions first_part = options;
    first_part.checkpoint = path;
    std::int64_t asked = 0;
    first_part.stop = [&] { return asked++ == stop_after; };
    Trainer stopped = small_trainer(device);
    CHECK(stopped.fit(data, first_part).end == History::End::stopped);
    CHECK(stopped.steps_done() == stop_after);

    Trainer resumed = small_trainer(device, {.seed = 999});  // the checkpoint's seed counts
    resumed.resume(path);
    CHECK(resumed.steps_done() == stop_after);
    CHECK(resumed.evaluate(data).samples == 50);  // an evaluation before does no harm
    resumed.fit(data, options);
    CHECK(resumed.steps_done() == whole.steps_done());
    CHECK(bytes_of(resumed) == bytes_of(whole));

    stopped.fit(data, options);  // so does going on with the same trainer
    CHECK(bytes_of(stopped) == bytes_of(whole));
  }
}

TEST_CASE("a checkpoint of another network or another epoch is refused", "[train]") {
  const DevicePtr& device = devices().front();
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  Trainer trainer = small_trainer(device, {.network = "small"});
  CHECK_THROWS_AS(trainer.save_checkpoint(path), ArgumentError);
  trainer.fit(small_data(50), {.batch = 10, .max_steps = 2});
  trainer.save_checkpoint(path);
  CHECK_THROWS_AS(trainer.resume(path), ArgumentError);

  Trainer named = small_trainer(device, {.network = "large"});
  CHECK_THROWS_WITH(named.resume(path), contains("'small'") && contains("'large'"));
  Trainer wider{small_net(4), loss::cross_entropy, optim::Adam{}, device};
  wider.resume(path);
  CHECK_THROWS_AS(wider.fit(small_data(50), {.batch = 10}), FormatError);
  Trainer other_optimizer{small_net(), loss::cross_entropy, optim::Sgd{}, device};
  CHECK_THROWS_WITH(other_optimizer.resume(path), contains("'adam'") && contains("'sgd'"));
  Trainer other_batch = small_trainer(device);
  other_batch.resume(path);
  CHECK_THROWS_AS(other_batch.fit(small_data(50), {.batch = 20}), ArgumentError);
  CHECK_THROWS_AS(small_trainer(device).resume(folder / "nothing"), IoError);
}

TEST_CASE("a checkpoint that contradicts itself is refused", "[train]") {
  const DevicePtr& device = devices().front();
  const TemporaryFolder folder;
  const auto good = folder / "good.safetensors", bad = folder / "bad.safetensors";
  Trainer trainer = small_trainer(device);
  trainer.fit(small_data(50), {.batch = 10, .max_steps = 2});
  trainer.save_checkpoint(good);
  const io::Checkpoint checkpoint = io::load_checkpoint(good);
  const std::vector<void (*)(io::CheckpointInfo&)> lies{
      [](io::CheckpointInfo& info) { info.position = 1000; },
      [](io::CheckpointInfo& info) { info.position = 15; },
      [](io::CheckpointInfo& info) { info.position = 30; },
      [](io::CheckpointInfo& info) { info.step = 99; },
      [](io::CheckpointInfo& info) { info.extra["batch"] = "ten"; },
      [](io::CheckpointInfo& info) { info.extra["batch"] = "0"; },
      [](io::CheckpointInfo& info) { info.extra.erase("samples"); },
      [](io::CheckpointInfo& info) { info.extra.erase("optimizer"); },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    INFO("lie " << i);
    io::CheckpointInfo info = checkpoint.info;
    lies[i](info);
    io::save_checkpoint(bad, checkpoint.tensors, info);
    Trainer other = small_trainer(device);
    CHECK_THROWS_AS(other.resume(bad), FormatError);
  }
}

TEST_CASE("what was loaded last counts, whatever was run before", "[train]") {
  const Dataset data = small_data(50);
  const TemporaryFolder folder;
  const auto run = folder / "run.safetensors", other = folder / "other.safetensors", out = folder / "out.safetensors";
  const TensorSpec sample{DType::f32, Shape{6}};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trained = small_trainer(device);
    trained.fit(data, {.epochs = 2, .batch = 10});
    trained.save_checkpoint(run);
    const double trained_loss = trained.evaluate(data).loss;
    Trainer another = small_trainer(device, {.seed = 77});
    another.prepare(sample);
    another.save(other);
    const double other_loss = another.evaluate(data).loss;

    Trainer evaluated = small_trainer(device);
    const double first_loss = evaluated.evaluate(data).loss;
    REQUIRE(first_loss != trained_loss);
    evaluated.resume(run);
    CHECK(evaluated.evaluate(data).loss == trained_loss);
    evaluated.load(other);
    CHECK(evaluated.evaluate(data).loss == other_loss);
    evaluated.fit(data, {.epochs = 0, .batch = 10});  // takes the optimizer's state, and leaves the weights
    CHECK(evaluated.evaluate(data).loss == other_loss);
    CHECK(evaluated.variables()->read(optim::kStep).values<std::int32_t>()[0] == 10);

    Trainer prepared = small_trainer(device);
    prepared.prepare(sample);
    prepared.resume(run);
    prepared.save(out);
    Trainer reader = small_trainer(device);
    reader.load(out);
    CHECK(reader.evaluate(data).loss == trained_loss);

    Trainer loaded_last = small_trainer(device);
    loaded_last.resume(run);
    loaded_last.load(other);
    CHECK(loaded_last.evaluate(data).loss == other_loss);
    Trainer resumed_last = small_trainer(device);
    resumed_last.load(other);
    resumed_last.resume(run);
    CHECK(resumed_last.evaluate(data).loss == trained_loss);

    Trainer wider{small_net(4), loss::cross_entropy, optim::Adam{}, device};
    const double wider_loss = wider.evaluate(data).loss;
    CHECK_THROWS_AS(wider.resume(run), FormatError);
    CHECK(wider.steps_done() == 0);
    CHECK(wider.evaluate(data).loss == wider_loss);
    Trainer unread{small_net(4), loss::cross_entropy, optim::Adam{}, device};
    unread.load(out);
    CHECK_THROWS_AS(unread.prepare(sample), FormatError);
    CHECK_THROWS_AS(unread.save(out), ArgumentError);  // not the first weights in their place
  }
}

TEST_CASE("a stopped training keeps the weights that it goes on with", "[train]") {
  const Dataset data = small_data(60), other = small_data(60, 1);
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  const DevicePtr& device = devices().front();
  FitOptions options{.epochs = 50, .batch = 20, .validate = other, .early_stopping = EarlyStopping{.patience = 10}};
  options.checkpoint = path;
  options.max_steps = 3 * 5 + 1;  // the other set only gets worse
  Trainer trainer{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.05}, device, {.seed = 2}};
  const History history = trainer.fit(data, options);
  CHECK(history.end == History::End::stopped);
  REQUIRE(history.best_epoch < 5);
  Trainer resumed{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.05}, device, {.seed = 2}};
  resumed.resume(path);
  CHECK(resumed.evaluate(data).loss == trainer.evaluate(data).loss);
}

TEST_CASE("weights go to a file and come back, to another device too", "[train]") {
  const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 40);
  const TemporaryFolder folder;
  const auto path = folder / "net.safetensors";
  Trainer trained{image_net(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, devices().front()};
  CHECK_THROWS_AS(trained.save(path), ArgumentError);
  trained.fit(data, {.epochs = 2, .batch = 10});
  trained.save(path);
  const Metrics expected = trained.evaluate(data);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : io::read_safetensors(path).tensors) names.push_back(name);
  CHECK(names == std::vector<std::string>{"0.bias", "0.weight", "1.bias", "1.running_mean", "1.running_var", "1.weight",
                                          "5.bias", "5.weight"});
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer before{image_net(), loss::cross_entropy, optim::Sgd{}, device};
    before.load(path);
    CHECK(before.evaluate(data).loss == Approx(expected.loss).epsilon(1e-5));
    Trainer after{image_net(), loss::cross_entropy, optim::Sgd{}, device};
    after.prepare({DType::f32, Shape{1, 8, 8}});
    after.load(path);
    CHECK(after.evaluate(data).loss == Approx(expected.loss).epsilon(1e-5));
    Trainer other = small_trainer(device);
    other.load(path);
    CHECK_THROWS_AS(other.evaluate(small_data()), FormatError);
    CHECK_THROWS_AS(other.load(folder / "nothing"), IoError);
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
