// Stopping and going on: checkpoints and weights of a Trainer, and what is refused.
#include <cmath>

#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

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

TEST_CASE("files of a training stay the same when the program changes its folder", "[train]") {
  struct Leave : Callback {
    std::filesystem::path to;
    void on_epoch(const EpochReport&) override { std::filesystem::current_path(to); }
  };
  const DevicePtr& device = devices().front();
  const TemporaryFolder folder, elsewhere;
  const InFolder inside(folder.path());
  const auto leave = std::make_shared<Leave>();
  leave->to = elsewhere.path();
  Trainer trainer = small_trainer(device);
  trainer.fit(small_data(20), {.epochs = 2, .batch = 10, .callbacks = {leave}, .checkpoint = "run.safetensors"});
  CHECK(std::filesystem::is_empty(elsewhere.path()));
  CHECK(io::load_checkpoint_info(folder / "run.safetensors").epoch == 2);

  std::filesystem::current_path(folder.path());
  Trainer loaded = small_trainer(device);
  loaded.load("run.safetensors");
  std::filesystem::current_path(elsewhere.path());
  CHECK(loaded.evaluate(small_data(20)).loss == trainer.evaluate(small_data(20)).loss);
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

TEST_CASE("a checkpoint of before gathered batches had weights goes on between updates", "[train]") {
  const TemporaryFolder folder;
  const auto path = folder / "old.safetensors";
  const FitOptions two_epochs{.epochs = 2, .batch = 10};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const TrainerOptions gathering{.seed = 4, .accumulate = 3};
    const auto resumed_after = [&](std::int64_t steps) {
      Trainer stopped = small_trainer(device, gathering);
      FitOptions first_part = two_epochs;
      first_part.max_steps = steps;
      stopped.fit(small_data(50), first_part);
      stopped.save_checkpoint(path);
      io::Checkpoint checkpoint = io::load_checkpoint(path);
      REQUIRE(checkpoint.tensors.erase(optim::kGatheredWeight) == 1);
      io::save_checkpoint(path, checkpoint.tensors, checkpoint.info);
      Trainer resumed = small_trainer(device, gathering);
      resumed.resume(path);
      resumed.fit(small_data(50), two_epochs);
      return bytes_of(resumed);
    };
    Trainer whole = small_trainer(device, gathering);
    whole.fit(small_data(50), two_epochs);
    CHECK(resumed_after(3) == bytes_of(whole));
    CHECK_THROWS_WITH(resumed_after(2), contains("missing (optim.gathered_weight)"));
  }
}

TEST_CASE("a training goes on where the device counts no more updates", "[train]") {
  constexpr std::int64_t kLate = 3 * std::int64_t{optim::kMostSteps};
  const TemporaryFolder folder;
  const auto path = folder / "late.safetensors", wrong = folder / "wrong.safetensors";
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer early = small_trainer(device);
    early.fit(small_data(50), {.batch = 10});
    early.save_checkpoint(path);
    io::Checkpoint late = io::load_checkpoint(path);
    late.info.step = kLate;
    io::save_checkpoint(wrong, late.tensors, late.info);
    Trainer trainer = small_trainer(device);
    CHECK_THROWS_AS(trainer.resume(wrong), FormatError);
    late.tensors[optim::kStep] = Tensor::of<std::int32_t>(Shape{}, std::vector<std::int32_t>{optim::kMostSteps});
    io::save_checkpoint(path, late.tensors, late.info);
    trainer.resume(path);
    trainer.fit(small_data(50), {.batch = 10});
    CHECK(trainer.steps_done() == kLate + 5);
    CHECK(trainer.variables()->read(optim::kStep).values<std::int32_t>()[0] == optim::kMostSteps);
    trainer.save_checkpoint(path);
    CHECK_NOTHROW(small_trainer(device).resume(path));
  }
}

TEST_CASE("a training whose scaled loss overflowed goes on", "[train]") {
  const DevicePtr& device = devices().front();
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  const auto trainer = [&] { return small_trainer(device, {.precision = Precision::fp16}); };
  Trainer first = trainer();
  first.fit(small_data(50), {.batch = 10});
  first.save_checkpoint(path);
  io::Checkpoint skipped = io::load_checkpoint(path);
  skipped.tensors[optim::kStep] = Tensor::of<std::int32_t>(Shape{}, std::vector<std::int32_t>{3});
  io::save_checkpoint(path, skipped.tensors, skipped.info);
  Trainer second = trainer();
  second.resume(path);
  second.fit(small_data(50), {.batch = 10});
  CHECK(second.steps_done() == 10);
  CHECK(second.variables()->read(optim::kStep).values<std::int32_t>()[0] == 8);
  skipped.tensors[optim::kStep] = Tensor::of<std::int32_t>(Shape{}, std::vector<std::int32_t>{6});
  io::save_checkpoint(path, skipped.tensors, skipped.info);
  CHECK_THROWS_AS(trainer().resume(path), FormatError);
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
