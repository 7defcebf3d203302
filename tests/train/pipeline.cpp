// A pipeline has the bits of accumulated batches on one device. shared_parameters.cpp has the exception.
#include <algorithm>

#include "train/staged_training.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

/// Of two layers.
Trainer shallow_trainer(const DevicePtr& device, const TrainerOptions& options) {
  return Trainer{nn::Sequential{nn::Linear{6, 16}, nn::ReLU{}, nn::Linear{16, 3}}, loss::cross_entropy,
                 optim::Sgd{.lr = 0.01}, device, options};
}

/// Of ten layers, so that four stages can be cut in many ways; draws random numbers in all of them.
Trainer deep_trainer(const DevicePtr& device, const TrainerOptions& options) {
  nn::Sequential net{nn::Linear{6, 16}, nn::ReLU{},         nn::Dropout{0.1F}, nn::Linear{16, 12},
                     nn::Tanh{},        nn::Linear{12, 12}, nn::ReLU{},        nn::Dropout{0.2F},
                     nn::Linear{12, 8}, nn::ReLU{},         nn::Linear{8, 3}};
  return Trainer{std::move(net), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, options};
}

}  // namespace

TEST_CASE("stages have the bits of accumulated batches", "[train][collective][pipeline]") {
  // 12 full batches and a shorter one.
  const Dataset data = small_data(101), test = small_data(40, 1);
  const FitOptions fit{.epochs = 2, .batch = 8, .validate = std::make_shared<Dataset>(test)};
  for (const DevicePtr& device : devices()) {
    for (const int stages : {2, 3, 4}) {
      INFO(device->info().id << ", " << stages << " stages");
      const TrainerOptions options{.seed = 4, .clip = {.norm = 0.5}, .ema_decay = 0.9};
      const Result one = on_one(device, 4, options, data, fit, deep_trainer);
      check_equal(one, in_stages(device, {stages, 4}, options, data, fit, deep_trainer));
    }
  }
}

TEST_CASE("stages of networks of the zoo have the bits of one device", "[train][collective][pipeline]") {
  struct Case {
    const char* network;
    Shape sample;
    int stages;
  };
  const auto [network, sample, stages] =
      GENERATE(Case{"lenet", {1, 28, 28}, 2}, Case{"resnet20", {3, 32, 32}, 3}, Case{"resnet20", {3, 32, 32}, 2});
  const Dataset data = data::synthetic(sample, 10, 22, 2);
  const MakeTrainer make = trainer_of(network, {.classes = 10}, optim::Sgd{.lr = 0.05, .momentum = 0.9});
  for (const DevicePtr& device : devices()) {
    INFO(network << " on " << device->info().id);
    const FitOptions fit{.epochs = 1, .batch = 4, .validate = std::make_shared<Dataset>(data)};
    const TrainerOptions options{.seed = 3, .clip = {.norm = 1}};
    const Result one = on_one(device, 4, options, data, fit, make);
    const Result staged = in_stages(device, {stages, 4}, options, data, fit, make);
    // The kernels of oneDNN depend on the layout of their operands, and what crosses a cut is row-major.
    if (device->info().backend == "onednn" && std::string(network) == "resnet20") {
      CHECK(staged.losses[0] == Approx(one.losses[0]).epsilon(1e-5));
      CHECK(staged.losses[1] == Approx(one.losses[1]).epsilon(1e-5));
    } else {
      check_equal(one, staged);
    }
  }
}

TEST_CASE("stages with streamed data, ignored labels and mixing have the same bits", "[train][collective][pipeline]") {
  Dataset images = data::synthetic(Shape{1, 6, 6}, 3, 50, 2);
  for (std::size_t i = 24; i < 32; ++i) images.labels.values<std::int32_t>()[i] = -100;  // a whole batch
  const MakeTrainer make = [](const DevicePtr& device, const TrainerOptions& options) {
    const loss::CrossEntropy weighted{.weights = {1, 3, 0.5F}, .ignore_index = -100};
    return Trainer{image_net(), weighted, optim::Sgd{.lr = 0.1, .momentum = 0.9}, device, options};
  };
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      INFO(device->info().id << ", resident part " << resident);
      const FitOptions fit{.epochs = 2, .batch = 8, .shuffle = false};
      const TrainerOptions options{.seed = 4, .resident_fraction = resident};
      check_equal(on_one(device, 3, options, images, fit, make), in_stages(device, {2, 3}, options, images, fit, make));
    }
    const Dataset plain = data::synthetic(Shape{1, 6, 6}, 3, 50, 2);
    const FitOptions mixed{.epochs = 2, .batch = 8, .mixing = {.mixup = 0.2}};
    check_equal(on_one(device, 3, {.seed = 4}, plain, mixed, make),
                in_stages(device, {2, 3}, {.seed = 4}, plain, mixed, make));
  }
}

TEST_CASE("stages scale the loss together", "[train][collective][pipeline]") {
  const Dataset data = small_data(101);
  const FitOptions fit{.epochs = 2, .batch = 8};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const TrainerOptions options{.seed = 4, .clip = {.norm = 0.5}, .precision = Precision::fp16};
    check_equal(on_one(device, 4, options, data, fit, deep_trainer),
                in_stages(device, {3, 4}, options, data, fit, deep_trainer));
  }
}

TEST_CASE("a checkpoint of a pipeline continues on one device, and back", "[train][collective][pipeline]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "stages.ckpt";
  const Dataset data = small_data(101);
  const DevicePtr& device = devices()[0];
  const FitOptions whole{.epochs = 3, .batch = 8};
  const TrainerOptions options{.seed = 4, .ema_decay = 0.9};
  const Result undisturbed = on_one(device, 4, options, data, whole, deep_trainer);
  const MakeTrainer resumed = resuming(deep_trainer, file);
  // 13 batches an epoch: within the second epoch, and at its end.
  for (const std::int64_t steps : {17, 26}) {
    const FitOptions first{.epochs = 3, .batch = 8, .checkpoint = file, .max_steps = steps};
    const Result stopped = in_stages(device, {3, 4}, options, data, first, deep_trainer);
    CHECK(stopped.steps == steps);
    const Result alone = on_one(device, 4, options, data, whole, resumed);
    const Result other = in_stages(device, {2, 4}, options, data, whole, resumed);
    for (const Result& result : {alone, other}) {
      CHECK(result.steps == undisturbed.steps);
      for (const auto& [name, tensor] : undisturbed.weights) {
        INFO(name);
        CHECK(std::ranges::equal(result.weights.at(name).bytes(), tensor.bytes()));
      }
    }
    static_cast<void>(on_one(device, 4, options, data, first, deep_trainer));
    const Result back = in_stages(device, {3, 4}, options, data, whole, resumed);
    CHECK(std::ranges::equal(back.weights.at("0.weight").bytes(), undisturbed.weights.at("0.weight").bytes()));
    CHECK(std::ranges::equal(back.weights.at("10.weight").bytes(), undisturbed.weights.at("10.weight").bytes()));
  }
}

TEST_CASE("all stages evaluate and predict as one device", "[train][collective][pipeline]") {
  const Dataset data = small_data(45);
  const DevicePtr& device = devices()[0];
  Trainer one = deep_trainer(device, {.seed = 4});
  const Tensor expected = one.predict(data, 16);
  const Metrics metrics = one.evaluate(data, {.batch = 16});
  const auto errors = on_ranks(3, [&](const GroupPtr& group) {
    Trainer trainer = deep_trainer(Device::open(device->info().id), {.seed = 4, .group = group, .pipeline = {3, 2}});
    const Tensor outputs = trainer.predict(data, 16);
    if (!std::ranges::equal(outputs.bytes(), expected.bytes())) throw Error("other outputs");
    const Metrics own = trainer.evaluate(data, {.batch = 16});
    if (own.loss != metrics.loss || own.accuracy != metrics.accuracy) throw Error("other metrics");
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a value that is not finite ends all stages, with the last good weights", "[train][collective][pipeline]") {
  const Dataset good = small_data(64);
  Dataset bad = small_data(64);
  bad.features.values<float>()[6 * 40] = NAN;  // sample 40: batch 5, of the second update
  const DevicePtr& device = devices()[0];
  const TemporaryFolder folder;
  const Result before =
      on_one(device, 4, {.seed = 4}, good, {.batch = 8, .shuffle = false, .max_steps = 4}, deep_trainer);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    Trainer trainer = deep_trainer(Device::open(device->info().id), {.seed = 4, .group = group, .pipeline = {2, 4}});
    try {
      trainer.fit(bad, {.batch = 8, .shuffle = false});
    } catch (const NonFinite&) {
      trainer.save(folder / "weights.safetensors");
      throw;
    }
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, contains("of the update of 4 batches from step 5 (epoch 1, batch 5)"));
  }
  const io::TensorMap kept = io::read_safetensors(folder / "weights.safetensors").tensors;
  for (const auto& [name, tensor] : before.weights) {
    INFO(name);
    CHECK(std::ranges::equal(kept.at(name).bytes(), tensor.bytes()));
  }
}

TEST_CASE("a stage that is lost ends the others within the deadline", "[train][collective][pipeline]") {
  check_lost_rank(deep_trainer, {.seed = 4, .pipeline = {3, 4}}, small_data(101), 8);
}

TEST_CASE("a pipeline that cannot be made is refused on all ranks", "[train][collective][pipeline]") {
  const auto errors_of = [](int ranks, const TrainerOptions& options, const FitOptions& fit = {.batch = 8}) {
    return on_ranks(ranks, [&](const GroupPtr& group) {
      TrainerOptions own = options;
      own.group = group;
      Trainer trainer = shallow_trainer(Device::open(devices()[0]->info().id), own);
      trainer.fit(small_data(64), fit);
    });
  };
  const auto check_all = [](const std::vector<std::string>& errors, const std::string& text) {
    for (const std::string& error : errors) CHECK_THAT(error, contains(text));
  };
  check_all(errors_of(2, {.pipeline = {3, 4}}), "3 stages needs 3 devices, one for each stage, got 2");
  check_all(errors_of(2, {.pipeline = {2, 1}}), "at least 2 batches an update (micro), got 1");
  check_all(errors_of(2, {.pipeline = {1, 4}}), "at least 2 stages, got 1");
  check_all(errors_of(2, {.accumulate = 2, .pipeline = {2, 4}}), "leave accumulate at 1, got 2");
  check_all(errors_of(3, {.pipeline = {3, 4}}), "at least 3 layers that have parameters; this one has 2");
  check_all(errors_of(2, {.pipeline = {2, 4}}, {.batch = 8, .nan_trace = true}), "nan_trace cannot be used");
}

TEST_CASE("stages share the memory of a network", "[train][collective][pipeline]") {
  const Dataset data = data::synthetic(Shape{256}, 3, 32, 2);
  const MakeTrainer make = [](const DevicePtr& device, const TrainerOptions& options) {
    nn::Sequential net;
    for (int i = 0; i < 8; ++i) net.push(nn::Linear{256, 256});
    return Trainer{std::move(net), loss::cross_entropy, optim::Adam{.lr = 0.001}, device, options};
  };
  const DevicePtr device = Device::open(devices()[0]->info().id);
  Trainer one = make(device, {.seed = 4, .accumulate = 4});
  one.fit(data, {.batch = 4});
  std::vector<std::size_t> peaks(2);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    const DevicePtr own = Device::open(device->info().id);
    Trainer trainer = make(own, {.seed = 4, .group = group, .pipeline = {2, 4}});
    trainer.fit(data, {.batch = 4});
    peaks[static_cast<std::size_t>(group->rank())] = own->peak_allocated();
  });
  CHECK(errors == std::vector<std::string>(2));
  for (const std::size_t peak : peaks) CHECK(3 * peak < 2 * device->peak_allocated());
}
