// A NaN gradient under a finite loss, weights that are not finite at a save, and rates that are none.
#include <cmath>

#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// |layer(x)| by a root whose slope at 0 is infinite, and running statistics beside it.
struct Root : nn::Module {
  nn::Linear layer{6, 6, {.bias = false}};
  nn::BatchNorm1d norm{6};
  Value forward(Value x) override { return sqrt(square(layer(x))) + norm(x); }
  Children children() override { return {{"layer", &layer}, {"norm", &norm}}; }
};

/// Sample 15 is 0: of the second batch of 10.
Dataset data_with_zero() {
  Dataset data = data::from_arrays(small_data(40).features.clone(), Tensor(DType::f32, Shape{40, 6}));
  for (std::size_t f = 0; f < 6; ++f) data.features.values<float>()[15 * 6 + f] = 0;
  return data;
}

}  // namespace

TEST_CASE("a NaN gradient under a finite loss destroys nothing", "[train]") {
  const Dataset data = data_with_zero();
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      for (const int accumulate : {1, 2}) {
        INFO(device->info().id << ", resident " << resident << ", accumulate " << accumulate);
        const auto make = [&] {
          return Trainer{Root{},
                         loss::mse,
                         optim::Adam{.lr = 0.01},
                         device,
                         {.accumulate = accumulate, .ema_decay = 0.9, .resident_fraction = resident}};
        };
        FitOptions options{.epochs = 2, .batch = 10, .shuffle = false};
        Trainer trainer = make(), good = make();
        const std::string message = message_of<NonFinite>([&] { trainer.fit(data, options); });
        INFO(message);
        for (const char* part : {"the loss is finite, but a gradient of step 2 (epoch 1, batch 2)", "sqrt",
                                 "the gradient of 'layer.weight'", "from before that step", "--clip-norm"}) {
          CHECK(contains(message, part));
        }
        CHECK(trainer.steps_done() == 1);
        options.max_steps = 1;
        good.fit(data, options);
        auto kept = bytes_of(trainer), expected = bytes_of(good);
        for (auto* state : {&kept, &expected}) state->erase(optim::kOk);
        CHECK(kept == expected);
        const auto path = folder / "run.safetensors";
        CHECK_NOTHROW(trainer.save(folder / "net.safetensors"));
        trainer.save_checkpoint(path);
        Trainer resumed = make();
        resumed.resume(path);
        CHECK_THROWS_AS(resumed.fit(data, {.epochs = 2, .batch = 10, .shuffle = false}), NonFinite);
      }
    }
  }
}

TEST_CASE("weights that are not finite are not saved unless that is asked for", "[train]") {
  const DevicePtr& device = devices().front();
  const TemporaryFolder folder;
  const auto net = folder / "net.safetensors", run = folder / "run.safetensors";
  Trainer trainer = small_trainer(device);
  trainer.fit(small_data(20), {.batch = 10});
  trainer.save(net);
  trainer.save_checkpoint(run);
  const auto files = std::pair(content_of(net.string()), content_of(run.string()));
  Tensor bias = trainer.variables()->read("3.bias");
  bias.values<float>()[1] = NAN;
  bias.values<float>()[2] = -INFINITY;
  trainer.variables()->write("3.bias", bias);
  for (const std::string& message : {message_of<NonFinite>([&] { trainer.save(net); }),
                                     message_of<NonFinite>([&] { trainer.save_checkpoint(run); })}) {
    INFO(message);
    CHECK(contains(message, "'3.bias' has 2 of 3 elements that are not finite"));
    CHECK(contains(message, "allow_non_finite"));
  }
  CHECK(files == std::pair(content_of(net.string()), content_of(run.string())));
  std::string said;
  set_log([&](LogLevel, std::string_view text) { said += text; });
  trainer.save(net, {.allow_non_finite = true});
  set_log({});
  CHECK(contains(said, "'3.bias'"));
  Trainer reader = small_trainer(device);
  reader.load(net);
  CHECK(std::isnan(reader.predict(small_data(1)).values<float>()[1]));
}

TEST_CASE("a rate that is none is refused before its step", "[train]") {
  const Dataset data = small_data(40);
  for (const double bad : {static_cast<double>(NAN), -1e-9, static_cast<double>(INFINITY), 1e300}) {
    INFO(bad);
    const optim::Schedule schedule(
        "mine", [bad](double base, const optim::Progress& progress) { return progress.step == 3 ? bad : base; }, false);
    Trainer trainer = small_trainer(devices().front()), good = small_trainer(devices().front());
    const std::string message =
        message_of<ArgumentError>([&] { trainer.fit(data, {.epochs = 2, .batch = 10, .schedule = schedule}); });
    INFO(message);
    for (const char* part : {"'mine'", "step 4 (epoch 1", "finite and not negative"}) CHECK(contains(message, part));
    CHECK(trainer.steps_done() == 3);
    good.fit(data, {.epochs = 2, .batch = 10, .max_steps = 3});
    CHECK(bytes_of(trainer) == bytes_of(good));
    CHECK_NOTHROW(trainer.fit(data, {.epochs = 1, .batch = 10}));
  }
}

TEST_CASE("a loss that explodes suggests what helps", "[train]") {
  const Dataset data = data::from_arrays(small_data(40).features.clone(), Tensor(DType::f32, Shape{40, 1}));
  for (const DevicePtr& device : devices()) {
    Trainer trainer{nn::Sequential{nn::Linear{6, 16}, nn::Linear{16, 1}}, loss::mse, optim::Sgd{.lr = 1e6}, device};
    const std::string message = message_of<NonFinite>([&] { trainer.fit(data, {.epochs = 50, .batch = 10}); });
    INFO(message);
    CHECK(contains(message, "smaller learning rate"));
    CHECK(contains(message, "--clip-norm"));
  }
}
