// Trainer::refresh_statistics: running statistics as their mean over the data, through averaged weights.
#include <numeric>

#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Mean and unbiased variance of what each of 3 units makes of the samples: x·Wᵀ + b.
struct Moments {
  std::vector<double> mean, variance;
};

Moments moments_of(const Dataset& data, const Tensor& weight, const Tensor& bias) {
  const auto rows = static_cast<std::size_t>(data.size()), width = static_cast<std::size_t>(weight.shape()[1]);
  Moments moments;
  for (std::size_t unit = 0; unit < static_cast<std::size_t>(weight.shape()[0]); ++unit) {
    std::vector<double> outputs;
    for (std::size_t row = 0; row < rows; ++row) {
      double sum = bias.values<float>()[unit];
      for (std::size_t i = 0; i < width; ++i) {
        sum += static_cast<double>(weight.values<float>()[unit * width + i]) *
               static_cast<double>(data.features.values<float>()[row * width + i]);
      }
      outputs.push_back(sum);
    }
    const double mean = std::accumulate(outputs.begin(), outputs.end(), 0.0) / static_cast<double>(rows);
    double squares = 0;
    for (const double output : outputs) squares += (output - mean) * (output - mean);
    moments.mean.push_back(mean);
    moments.variance.push_back(squares / static_cast<double>(rows - 1));
  }
  return moments;
}

void check_statistics(const Trainer& trainer, const Moments& expected, double epsilon) {
  const Tensor mean = trainer.variables()->read("ema.1.running_mean"),
               variance = trainer.variables()->read("ema.1.running_var");
  for (std::size_t unit = 0; unit < expected.mean.size(); ++unit) {
    CHECK(mean.values<float>()[unit] == Approx(expected.mean[unit]).epsilon(epsilon).margin(1e-5));
    CHECK(variance.values<float>()[unit] == Approx(expected.variance[unit]).epsilon(epsilon));
  }
}

}  // namespace

TEST_CASE("statistics of batch norm are refreshed for averaged weights", "[train]") {
  const Dataset data = data::synthetic(Shape{5}, 3, 60, 0);
  const bool momentum = GENERATE(true, false);
  for (const DevicePtr& device : devices()) {
    for (const double resident : {1.0, 0.0}) {
      INFO(device->info().id << ", part of the memory for data " << resident << ", momentum " << momentum);
      nn::BatchNormOptions options;
      if (!momentum) options.momentum.reset();
      Trainer trainer{nn::Sequential{nn::Linear{5, 3}, nn::BatchNorm1d{3, options}, nn::ReLU{}, nn::Linear{3, 3}},
                      loss::cross_entropy,
                      optim::Sgd{.lr = 0.5},
                      device,
                      {.seed = 1, .ema_decay = 0.9, .resident_fraction = resident}};
      trainer.fit(data, {.epochs = 3, .batch = 10});
      const Tensor own = trainer.variables()->read("0.weight").clone();
      const Tensor own_mean = trainer.variables()->read("1.running_mean").clone();
      const Tensor average = trainer.variables()->read("ema.0.weight"), bias = trainer.variables()->read("ema.0.bias");
      trainer.refresh_statistics(data, 60);
      check_statistics(trainer, moments_of(data, average, bias), 1e-4);
      CHECK(std::ranges::equal(own.bytes(), trainer.variables()->read("0.weight").bytes()));
      CHECK(std::ranges::equal(own_mean.bytes(), trainer.variables()->read("1.running_mean").bytes()));

      // Over batches: the mean of means is that of all samples, here too.
      trainer.variables()->write("ema.1.running_mean", Tensor::of<float>(Shape{3}, std::vector<float>{NAN, 1e30F, -1}));
      trainer.refresh_statistics(data, 20);
      const Tensor mean = trainer.variables()->read("ema.1.running_mean");
      const Moments expected = moments_of(data, average, bias);
      for (std::size_t unit = 0; unit < 3; ++unit) {
        CHECK(mean.values<float>()[unit] == Approx(expected.mean[unit]).epsilon(1e-4).margin(1e-5));
      }
      if (!momentum) {
        CHECK(trainer.variables()->read("ema.1.num_batches_tracked").values<float>()[0] == 3);
        CHECK(trainer.variables()->read("1.num_batches_tracked").values<float>()[0] == 18);  // the training's own
      }
      trainer.refresh_statistics(data, 45);  // 15 are left over
      CHECK(std::isfinite(trainer.evaluate(data).loss));
      trainer.fit(data, {.epochs = 1, .batch = 10});  // and training goes on
    }
  }
}
