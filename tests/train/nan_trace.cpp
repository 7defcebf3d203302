// FitOptions::nan_trace: values that are not finite where the loss does not show them.
#include "files.hpp"
#include "small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Positive numbers, but for a zero in batch 3 of 10 without shuffling.
Dataset data_with_zero() {
  Dataset data = small_data(40);
  data.features = data.features.clone();
  for (float& v : data.features.values<float>()) v = std::abs(v) + 0.1F;
  data.features.values<float>()[6 * 25] = 0;
  return data;
}

/// Takes -10 for logarithms below it: the loss stays finite.
struct Hidden : nn::Module {
  nn::Linear layer{6, 3};
  Value forward(Value x) override {
    const Scalar value = scalar::input(0);
    return layer(pointwise("hidden", {log(x)}, scalar::select(scalar::less(value, -10.0F), -10.0F, value)));
  }
  Children children() override { return {{"layer", &layer}}; }
};

/// Both convolutions overflow in the second step; on the CPU their operands are in layouts of oneDNN's.
struct Images : nn::Module {
  nn::Conv2d first{1, 16, 3, {.padding = 1}}, second{16, 16, 3, {.padding = 1}};
  nn::Linear last{16 * 64, 3};
  Value forward(Value x) override { return last(reshape(second(relu(first(x))), {-1, 16 * 64})); }
  Children children() override { return {{"first", &first}, {"second", &second}, {"last", &last}}; }
};

}  // namespace

TEST_CASE("nan_trace stops at the first value that is not finite", "[train]") {
  const Dataset data = data_with_zero();
  for (const DevicePtr& device : devices()) {
    const double resident = GENERATE(0.4, 0.0);
    INFO(device->info().id << ", resident " << resident);
    FitOptions options{.epochs = 1, .batch = 10, .shuffle = false};
    const auto make = [&] {
      return Trainer{Hidden{}, loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.resident_fraction = resident}};
    };
    Trainer unaware = make(), stopped = make(), traced = make();
    CHECK(unaware.fit(data, options).epochs.size() == 1);  // the loss does not show it
    options.max_steps = 2;
    stopped.fit(data, options);
    options.max_steps = 0;
    options.nan_trace = true;
    const std::string message = message_of<NonFinite>([&] { traced.fit(data, options); });
    INFO(message);
    for (const char* part : {"step 3 (epoch 1, batch 3)", "'log'", "1 of 60 elements", "computed from", " in [0, "}) {
      CHECK(contains(message, part));
    }
    CHECK(traced.steps_done() == 2);
    CHECK(bytes_of(traced) == bytes_of(stopped));
  }
}

TEST_CASE("nan_trace tells values as the network has them, not as a kernel reads them", "[train]") {
  const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 20, 0);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{Images{}, loss::cross_entropy, optim::Sgd{.lr = 1e30}, device};
    const std::string message =
        message_of<NonFinite>([&] { trainer.fit(data, {.epochs = 1, .batch = 10, .nan_trace = true}); });
    INFO(message);
    CHECK(contains(message, "conv2d"));
    CHECK(contains(message, "second.weight in ["));
    CHECK_FALSE(contains(message, "in blocked"));
    CHECK_FALSE(contains(message, "in row-major"));
  }
}

TEST_CASE("nan_trace changes no bit of a training whose values are finite", "[train]") {
  const Dataset data = small_data(50);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer plain = small_trainer(device), traced = small_trainer(device);
    plain.fit(data, {.epochs = 2, .batch = 20});
    traced.fit(data, {.epochs = 2, .batch = 20, .nan_trace = true});
    CHECK(bytes_of(plain) == bytes_of(traced));
  }
}

TEST_CASE("nan_trace is refused where overflow is meant", "[train]") {
  Trainer trainer = small_trainer(devices().front(), {.precision = Precision::fp16});
  CHECK_THROWS_AS(trainer.fit(small_data(20), {.batch = 20, .nan_trace = true}), ArgumentError);
}
