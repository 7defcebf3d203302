// A network whose layers are divided among ranks has the results of one device, up to rounding.
#include <chrono>
#include <cmath>

#include "train/divided_training.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;
using nn::Division;

namespace {

MakeTrainer of_zoo(const std::string& name, const optim::Optimizer& optimizer) {
  return [=](const DevicePtr& device, const TrainerOptions& options) {
    models::Variant variant;
    variant.classes = 20;
    variant.dropout = false;
    if (name.starts_with("vit")) variant.input = Shape{3, 16, 16};
    return Trainer{models::make(name, variant), models::loss_of(models::find(name), variant), optimizer, device,
                   options};
  };
}

/// The layers of nn: an encoder and grouped queries.
struct Layers : nn::Module {
  nn::Embedding words{20, 16};
  nn::TransformerEncoder encoder;
  nn::GroupedQueryAttention grouped{16, 4, {.key_heads = 2}};
  nn::Linear head{16, 20};
  explicit Layers(float dropout) : encoder(2, 16, 4, {.feed_forward = 24, .dropout = dropout}) {}
  Value forward(Value tokens) override {
    const Value x = encoder(words(tokens), {.causal = ops::Causal::first});
    return head(x + grouped(x));
  }
  Children children() override {
    return {{"words", &words}, {"encoder", &encoder}, {"grouped", &grouped}, {"head", &head}};
  }
};

MakeTrainer of_layers(float dropout) {
  return [=](const DevicePtr& device, const TrainerOptions& options) {
    const auto loss = [](Value logits, Value words) {
      return loss::cross_entropy(reshape(logits, {-1, 20}), reshape(words, {-1}));
    };
    return Trainer{std::make_shared<Layers>(dropout), loss, optim::Sgd{.lr = 0.1, .momentum = 0.9}, device, options};
  };
}

/// As AlexNet: convolutions, then linear layers. The scores cannot be divided.
MakeTrainer of_images(float dropout) {
  return [=](const DevicePtr& device, const TrainerOptions& options) {
    nn::Sequential net{nn::Conv2d{1, 6, 3, {.padding = 1}},
                       nn::BatchNorm2d{6},
                       nn::ReLU{},
                       nn::MaxPool2d{2},
                       nn::Flatten{},
                       nn::Dropout{dropout},
                       nn::Linear{54, 24},
                       nn::ReLU{},
                       nn::Dropout{dropout},
                       nn::Linear{24, 12},
                       nn::ReLU{},
                       nn::Linear{12, 5}};
    return Trainer{std::move(net), loss::cross_entropy, optim::Sgd{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3},
                   device, options};
  };
}

Dataset image_data(std::int64_t samples) { return data::synthetic(Shape{1, 6, 6}, 5, samples, 2); }

}  // namespace

TEST_CASE("transformers divided among ranks train as on one device", "[train][collective][model_parallel]") {
  // Biases of keys have no gradient but rounding, which Adam would make large.
  const optim::Sgd sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-3};
  struct Case {
    const char* name;
    MakeTrainer make;
    Dataset data;
  };
  const std::vector<Case> cases{
      {"gpt", of_zoo("gpt_tiny:depth=2,width=32,heads=4,length=12", sgd), token_data(20, 12, 20)},
      {"bert", of_zoo("bert_base:depth=2,width=32,heads=4,length=12", sgd), token_data(20, 12, 20)},
      {"vit", of_zoo("vit_b_16:depth=2,width=32,heads=4,patch=8", sgd), data::synthetic(Shape{3, 16, 16}, 20, 20, 3)},
      {"nn", of_layers(0), token_data(20, 12, 20)}};
  for (const DevicePtr& device : devices()) {
    for (const Case& network : cases) {
      INFO(network.name << " on " << device->info().id);
      const FitOptions fit{.epochs = 2, .batch = 4, .validate = std::make_shared<Dataset>(network.data)};
      const TrainerOptions options{.seed = 3, .clip = {.norm = 0.5}};
      const Result one = on_one(device, options, network.data, fit, network.make);
      CHECK(one.losses[2] < one.losses[0]);
      check_close(one, on_parts({device}, {Division::tensor, 2}, options, network.data, fit, network.make), 2e-5);
    }
  }
}

TEST_CASE("four parts, accumulation and averages of weights are those of one device",
          "[train][collective][model_parallel]") {
  const DevicePtr& device = devices()[0];
  const Dataset data = token_data(22, 12, 20);
  const MakeTrainer make = of_zoo("gpt_tiny:depth=2,width=32,heads=4,length=12", optim::Sgd{.lr = 0.1});
  const FitOptions fit{.epochs = 2, .batch = 4, .validate = std::make_shared<Dataset>(data)};
  const TrainerOptions options{.seed = 3, .clip = {.norm = 0.1}, .accumulate = 2, .ema_decay = 0.8};
  const Result one = on_one(device, options, data, fit, make);
  check_close(one, on_parts({device}, {Division::tensor, 4}, options, data, fit, make), 2e-5);
  const TrainerOptions scaled{.seed = 3, .precision = Precision::fp16};
  check_close(on_one(device, scaled, data, fit, make),
              on_parts({device}, {Division::tensor, 2}, scaled, data, fit, make), 2e-2);
}

TEST_CASE("convolutions by samples and linear layers by columns train as on one device",
          "[train][collective][model_parallel]") {
  for (const DevicePtr& device : devices()) {
    for (const int ranks : {2, 3}) {
      INFO(ranks << " ranks on " << device->info().id);
      const Dataset data = image_data(38);  // the last batch has 2 samples: fewer than ranks, where there are 3
      const FitOptions fit{.epochs = 3, .batch = 9, .validate = std::make_shared<Dataset>(data)};
      const TrainerOptions options{.seed = 3, .clip = {.norm = 0.5}, .ema_decay = 0};
      const Result one = on_one(device, options, data, fit, of_images(0));
      check_close(one, on_parts({device}, {Division::hybrid, ranks}, options, data, fit, of_images(0)), 1e-4);
    }
  }
}

TEST_CASE("convolutions by samples train as ranks with batches of their own", "[train][collective][model_parallel]") {
  const DevicePtr& device = devices()[0];
  const Dataset data = image_data(32);
  const Result parts =
      on_parts({device}, {Division::hybrid, 2}, {.seed = 3}, data, {.epochs = 3, .batch = 16}, of_images(0));
  std::vector<Result> ranks(2);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    const TrainerOptions options{.seed = 3, .group = group, .sync_batch_norm = true};
    Trainer trainer = of_images(0)(Device::open(device->info().id), options);
    Result& result = ranks[static_cast<std::size_t>(group->rank())];
    note(result, trainer, trainer.fit(data, {.epochs = 3, .batch = 8}));
    for (const auto& [name, tensor] : parts.weights) result.weights.emplace(name, trainer.variables()->read(name));
  });
  REQUIRE(errors == std::vector<std::string>(2));
  check_close(ranks[0], parts, 1e-4);
}

TEST_CASE("dropout is the same on all ranks where values are, and other devices agree to the bit",
          "[train][collective][model_parallel]") {
  const std::vector<DevicePtr> all = devices();
  const FitOptions fit{.epochs = 2, .batch = 4, .validate = std::make_shared<Dataset>(token_data(20, 12, 20))};
  const Result tokens = on_parts(all, {Division::tensor, 2}, {.seed = 3}, token_data(20, 12, 20), fit, of_layers(0.2F));
  CHECK(tokens.losses[2] < tokens.losses[0]);
  const FitOptions images{.epochs = 3, .batch = 9, .last_batch = LastBatch::drop};
  const Result pictures = on_parts(all, {Division::hybrid, 2}, {.seed = 3}, image_data(38), images, of_images(0.3F));
  CHECK(std::isfinite(pictures.losses[2]));
}

TEST_CASE("a checkpoint of divided layers continues on one device, and back", "[train][collective][model_parallel]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "parts.ckpt", weights = folder / "one.safetensors";
  const DevicePtr& device = devices()[0];
  const Dataset data = token_data(20, 12, 20);
  const FitOptions whole{.epochs = 3, .batch = 4};
  const TrainerOptions options{.seed = 3, .ema_decay = 0.9};
  const MakeTrainer make = of_layers(0);
  const Result undisturbed = on_one(device, options, data, whole, make);
  const Before resume = [&](Trainer& trainer) { trainer.resume(file); };
  const FitOptions first{.epochs = 3, .batch = 4, .checkpoint = file, .max_steps = 7};  // within the second epoch
  static_cast<void>(on_parts({device}, {Division::tensor, 2}, options, data, first, make));
  check_close({undisturbed.weights, {undisturbed.losses.begin() + 1, undisturbed.losses.end()}},
              on_one(device, options, data, whole, make, resume), 2e-5);
  static_cast<void>(on_one(device, options, data, first, make));
  check_close({undisturbed.weights, {undisturbed.losses.begin() + 1, undisturbed.losses.end()}},
              on_parts({device}, {Division::tensor, 2}, options, data, whole, make, resume), 2e-5);
}

TEST_CASE("divided layers evaluate and predict as one device", "[train][collective][model_parallel]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "one.safetensors";
  const DevicePtr& device = devices()[0];
  const Dataset data = image_data(23);
  Trainer one = of_images(0.5F)(device, {.seed = 9});
  const Tensor expected = one.predict(data, 8);
  const Metrics metrics = one.evaluate(data, {.batch = 8});
  one.save(file);
  const auto errors = on_ranks(3, [&](const GroupPtr& group) {
    Trainer trainer = of_images(0.5F)(Device::open(device->info().id),
                                      {.seed = 1, .group = group, .model_parallel = {Division::hybrid, 3}});
    trainer.load(file);  // other first values than by the seed
    const Tensor outputs = trainer.predict(data, 8);
    for (std::size_t i = 0; i < expected.values<float>().size(); ++i) {
      if (std::abs(outputs.values<float>()[i] - expected.values<float>()[i]) > 1e-5F) throw Error("other outputs");
    }
    const Metrics own = trainer.evaluate(data, {.batch = 8});
    if (std::abs(own.loss - metrics.loss) > 1e-5 || own.accuracy != metrics.accuracy) throw Error("other metrics");
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a value that is not finite in one part ends all, with the last good weights",
          "[train][collective][model_parallel]") {
  Dataset bad = image_data(36);
  bad.features.values<float>()[36 * 20] = NAN;  // sample 20: batch 3
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    Trainer trainer = of_images(0)(Device::open(devices()[0]->info().id),
                                   {.seed = 4, .group = group, .model_parallel = {Division::hybrid, 2}});
    try {
      trainer.fit(bad, {.batch = 9, .shuffle = false});
    } catch (const NonFinite&) {
      if (trainer.steps_done() != 2) throw Error("another step");
      throw;
    }
  });
  for (const std::string& error : errors) CHECK_THAT(error, contains("the loss or a gradient of step 3"));
}

TEST_CASE("a part that is lost ends the others within the deadline", "[train][collective][model_parallel]") {
  check_lost_rank(of_images(0), {.seed = 4, .model_parallel = {Division::hybrid, 3}}, image_data(36), 9);
}

TEST_CASE("what cannot be divided is refused on all ranks", "[train][collective][model_parallel]") {
  const auto check_refused = [](const MakeTrainer& make, ModelParallel parallel, int ranks, const Dataset& data,
                                const std::string& text, const TrainerOptions& options = {},
                                const FitOptions& fit = {.batch = 4}) {
    const auto errors = on_ranks(ranks, [&](const GroupPtr& group) {
      TrainerOptions own = options;
      own.group = group;
      own.model_parallel = parallel;
      Trainer trainer = make(Device::open(devices()[0]->info().id), own);
      trainer.fit(data, fit);
    });
    for (const std::string& error : errors) CHECK_THAT(error, contains(text));
  };
  const auto with = [](const optim::Optimizer& optimizer) {
    return of_zoo("gpt_tiny:depth=1,width=32,heads=4,length=12", optimizer);
  };
  const Dataset tokens = token_data(8, 12, 20), images = image_data(8);
  const ModelParallel two{Division::tensor, 2}, hybrid{Division::hybrid, 2};
  check_refused(of_images(0), two, 2, images, "divides the blocks of transformers, and this network has none");
  check_refused(with(optim::Sgd{}), {Division::tensor, 3}, 3, tokens, "cannot divide");
  check_refused(with(optim::Lamb{}), two, 2, tokens, "the optimizer 'lamb' computes with whole parameters");
  check_refused(with(optim::Sgd{}), hybrid, 2, tokens, "linear layers come last");
  check_refused(with(optim::Sgd{}), two, 3, tokens,
                "a network in 2 parts needs as many devices, and at least 2, got 3");
  check_refused(with(optim::Sgd{}), two, 2, tokens, "nan_trace cannot be used", {}, {.batch = 4, .nan_trace = true});
  check_refused(with(optim::Sgd{}), two, 2, tokens, "cannot go on without one of them", {.min_ranks = 1});
  const MakeTrainer no_linear = [](const DevicePtr& device, const TrainerOptions& options) {
    return Trainer{nn::Sequential{nn::Conv2d{1, 5, 6}, nn::Flatten{}}, loss::cross_entropy, optim::Sgd{}, device,
                   options};
  };
  check_refused(no_linear, hybrid, 2, images, "divides linear layers, and this network has none");
}

TEST_CASE("ranks share the memory of divided layers", "[train][collective][model_parallel]") {
  const Dataset data = data::synthetic(Shape{256}, 3, 32, 2);
  const MakeTrainer make = [](const DevicePtr& device, const TrainerOptions& options) {
    nn::Sequential net;
    for (int i = 0; i < 8; ++i) net.push(nn::Linear{256, 256});
    return Trainer{std::move(net), loss::cross_entropy, optim::Adam{.lr = 0.001}, device, options};
  };
  const DevicePtr device = Device::open(devices()[0]->info().id);
  Trainer one = make(device, {.seed = 4});
  one.fit(data, {.batch = 4});
  std::vector<std::size_t> peaks(2);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    const DevicePtr own = Device::open(device->info().id);
    Trainer trainer = make(own, {.seed = 4, .group = group, .model_parallel = {Division::hybrid, 2}});
    trainer.fit(data, {.batch = 4});
    peaks[static_cast<std::size_t>(group->rank())] = own->peak_allocated();
  });
  CHECK(errors == std::vector<std::string>(2));
  for (const std::size_t peak : peaks) CHECK(3 * peak < 2 * device->peak_allocated());
}
