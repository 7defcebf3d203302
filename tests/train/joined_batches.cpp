// Batches that are joined, by accumulation or in the losses of an epoch or an evaluation, are one batch, whatever the
// loss averages over.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "concord/train/metrics.hpp"
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kSamples = 20, kFeatures = 4, kClasses = 3;
constexpr std::int32_t kIgnored = -100;

Tensor features() {
  Tensor x(DType::f32, Shape{kSamples, kFeatures});
  for (std::size_t i = 0; i < x.values<float>().size(); ++i) {
    x.values<float>()[i] = std::sin(1.7F * static_cast<float>(i * i % 101));
  }
  return x;
}

/// The classes 0, 1 and 2 unevenly, every third label ignored, and samples 4 and 5 as well.
Dataset classes_with_ignored() {
  Tensor y(DType::i32, Shape{kSamples});
  for (std::int32_t i = 0; i < kSamples; ++i) {
    y.values<std::int32_t>()[static_cast<std::size_t>(i)] = i % 3 == 0 || i == 4 || i == 5 ? kIgnored : i * i % 5 % 3;
  }
  return data::from_arrays(features(), y, kClasses, kIgnored);
}

Dataset classes() {
  Tensor y(DType::i32, Shape{kSamples});
  for (std::int32_t i = 0; i < kSamples; ++i) y.values<std::int32_t>()[static_cast<std::size_t>(i)] = i * i % 5 % 3;
  return data::from_arrays(features(), y, kClasses);
}

/// Targets in (0, 1) whose rows add up to 1.
Dataset numbers() {
  Tensor y(DType::f32, Shape{kSamples, kClasses});
  for (std::size_t i = 0; i < kSamples; ++i) {
    const float a = 0.5F + 0.3F * std::sin(static_cast<float>(3 * i)), b = 0.5F * (1 - a);
    y.values<float>()[3 * i] = a;
    y.values<float>()[3 * i + 1] = b;
    y.values<float>()[3 * i + 2] = 1 - a - b;
  }
  return data::from_arrays(features(), y);
}

struct Case {
  const char* name;
  Loss loss;
  Dataset data;
};

Loss pixels(const loss::CrossEntropy& loss) {  // (N, 3) as (N, 3, 1, 1)
  return [loss](Value x, Value y) {
    const std::int64_t n = x.shape()[0];
    return loss(reshape(x, Shape{n, kClasses, 1, 1}), reshape(y, Shape{n, 1, 1}));
  };
}

std::vector<Case> cases() {
  using namespace loss;
  const std::vector<float> weights{1, 10, 0.5F};
  const Dataset ignored = classes_with_ignored(), plain = classes(), real = numbers();
  const CrossEntropy weighted{.weights = weights}, ignoring{.ignore_index = kIgnored};
  const CrossEntropy all{.label_smoothing = 0.1F, .weights = weights, .ignore_index = kIgnored};
  return {
      {"cross entropy", cross_entropy, plain},
      {"weights", weighted, plain},
      {"ignore", ignoring, ignored},
      {"all", all, ignored},
      {"pixels", pixels(all), ignored},
      {"a class of weight 0", CrossEntropy{.weights = {0, 1, 2}}, plain},
      {"sum", CrossEntropy{.reduction = Reduction::sum}, plain},
      {"sum of all", CrossEntropy{.weights = weights, .ignore_index = kIgnored, .reduction = Reduction::sum}, ignored},
      {"probabilities", CrossEntropy{.label_smoothing = 0.1F, .weights = weights}, real},
      {"nll", [=](Value x, Value y) { return Nll{.weights = weights, .ignore_index = kIgnored}(log_softmax(x), y); },
       ignored},
      {"multiples", [=](Value x, Value y) { return 0.5F * weighted(x, y) + 0.25F * weighted(2.0F * x, y); }, plain},
      {"two weights", [=](Value x, Value y) { return 0.7F * weighted(x, y) + ignoring(x, y) / 3.0F; },
       data::from_arrays(features(), plain.labels.clone(), kClasses)},
      {"weight and mean", [=](Value x, Value y) { return weighted(x, y) + 0.1F * mean(square(x)); }, plain},
      {"mean and sum", [=](Value x, Value y) { return cross_entropy(x, y) + 0.01F * total(sum(abs(x))) + 1.0F; },
       plain},
      {"a user's weight",
       [](Value x, Value y) {
         const Value weight = y * y;
         return weighted_mean(sum(square(x - y) * weight), sum(weight));
       },
       real},
      {"a user's mean", [](Value x, Value y) { return mean(square(x - y)) * 2.0F; }, real},
      {"mse", mse, real},
      {"mse sum", Mse{.reduction = Reduction::sum}, real},
      {"l1", l1, real},
      {"huber", huber, real},
      {"bce", bce_with_logits, real},
      {"focal sum", Focal{.reduction = Reduction::sum}, real},
      {"kl", [](Value x, Value y) { return kl_divergence(log_softmax(x), y); }, real},
      {"kl elements", [](Value x, Value y) { return KlDivergence{.per_sample = false}(log_softmax(x), y); }, real},
  };
}

Trainer trainer_of(const Case& one, const DevicePtr& device, TrainerOptions options = {}, double rate = 0.02) {
  options.seed = 3;
  return Trainer{nn::Sequential{nn::Linear{kFeatures, kClasses}}, one.loss, optim::Sgd{.lr = rate, .momentum = 0.9},
                 device, options};
}

void check_same_weights(const Trainer& a, const Trainer& b) {
  for (const char* name : {"0.weight", "0.bias"}) {
    const Tensor x = a.variables()->read(name), y = b.variables()->read(name);
    for (std::size_t i = 0; i < x.values<float>().size(); ++i) {
      INFO(name << "[" << i << "]");
      const auto expected = static_cast<double>(x.values<float>()[i]);
      CHECK(static_cast<double>(y.values<float>()[i]) == Approx(expected).epsilon(1e-5).margin(2e-6));
    }
  }
}

struct Cut {
  std::int64_t batch;
  int accumulate;
};

}  // namespace

TEST_CASE("accumulated batches are one batch for every loss, at the end of an epoch, too", "[train]") {
  for (const DevicePtr& device : devices()) {
    for (const Case& one : cases()) {
      Trainer large = trainer_of(one, device), sixes = trainer_of(one, device);
      const double loss = large.fit(one.data, {.epochs = 2, .batch = 8, .shuffle = false}).epochs[0].loss;
      sixes.fit(one.data, {.epochs = 2, .batch = 6, .shuffle = false});
      CHECK(std::isfinite(loss));
      for (const Cut& cut : {Cut{2, 4}, Cut{4, 2}, Cut{3, 2}}) {
        INFO(device->info().id << ", " << one.name << ", " << cut.accumulate << " batches of " << cut.batch);
        Trainer small = trainer_of(one, device, {.accumulate = cut.accumulate});
        small.fit(one.data, {.epochs = 2, .batch = cut.batch, .shuffle = false});
        check_same_weights(cut.batch == 3 ? sixes : large, small);
        CHECK(small.variables()->read(optim::kStep).values<std::int32_t>()[0] == (cut.batch == 3 ? 8 : 6));
      }
    }
  }
}

TEST_CASE("joined batches are one with clipping, averages, a scaled loss and Adam", "[train]") {
  for (const DevicePtr& device : devices()) {
    for (const Case& one : cases()) {
      if (one.name != std::string("all") && one.name != std::string("two weights")) continue;
      INFO(device->info().id << ", " << one.name);
      const auto make = [&](int accumulate) {
        return Trainer{nn::Sequential{nn::Linear{kFeatures, kClasses}},
                       one.loss,
                       optim::Adam{.lr = 0.01},
                       device,
                       {.seed = 3, .clip = {.norm = 0.3}, .accumulate = accumulate, .ema_decay = 0.5}};
      };
      Trainer large = make(1), small = make(4);
      large.fit(one.data, {.epochs = 2, .batch = 8, .shuffle = false});
      small.fit(one.data, {.epochs = 2, .batch = 2, .shuffle = false});
      check_same_weights(large, small);
      CHECK(small.evaluate(one.data).loss == Approx(large.evaluate(one.data).loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("losses do not depend on how samples are cut into batches", "[train]") {
  for (const DevicePtr& device : devices()) {
    for (const Case& one : cases()) {
      Trainer trainer = trainer_of(one, device, {}, 0);
      const double whole = trainer.evaluate(one.data, {.batch = kSamples}).loss;
      CHECK(std::isfinite(whole));
      for (const std::int64_t batch : {8, 3, 2}) {
        INFO(device->info().id << ", " << one.name << ", batches of " << batch);
        CHECK(trainer.evaluate(one.data, {.batch = batch}).loss == Approx(whole).epsilon(1e-5));
        const History history = trainer.fit(one.data, {.batch = batch, .validate = one.data});
        CHECK(history.epochs[0].loss == Approx(whole).epsilon(1e-5));
        CHECK(history.epochs[0].validation->loss == Approx(whole).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("a weighted mean over several batches is that of float64", "[train]") {
  const std::vector<float> weights{1, 10, 0.5F};
  const Dataset data = classes_with_ignored();
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{kFeatures, kClasses, {.bias = false}};
    layer.weight()->value = Tensor(DType::f32, Shape{kClasses, kFeatures});  // zeros: every probability is 1/3
    Trainer trainer{std::move(layer),
                    loss::CrossEntropy{.weights = weights, .ignore_index = kIgnored},
                    optim::Sgd{.lr = 1},
                    device,
                    {.accumulate = 10}};
    trainer.fit(data, {.batch = 2, .shuffle = false});
    std::vector<double> expected(kClasses * kFeatures);
    double total = 0;
    for (std::size_t n = 0; n < kSamples; ++n) {
      const std::int32_t label = data.labels.values<std::int32_t>()[n];
      if (label == kIgnored) continue;
      const auto weight = static_cast<double>(weights[static_cast<std::size_t>(label)]);
      total += weight;
      for (std::size_t c = 0; c < kClasses; ++c) {
        for (std::size_t f = 0; f < kFeatures; ++f) {
          const auto x = static_cast<double>(data.features.values<float>()[n * kFeatures + f]);
          expected[c * kFeatures + f] -= weight * (1.0 / 3 - (static_cast<std::size_t>(label) == c ? 1 : 0)) * x;
        }
      }
    }
    const Tensor weight = trainer.variables()->read("weight");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(static_cast<double>(weight.values<float>()[i]) == Approx(expected[i] / total).epsilon(1e-5).margin(1e-6));
    }
  }
}

TEST_CASE("a batch whose labels are all ignored changes nothing and stops nothing", "[train]") {
  const Loss ignoring = loss::CrossEntropy{.weights = {1, 10, 0.5F}, .ignore_index = kIgnored};
  Dataset none = classes_with_ignored();
  none.labels = none.labels.clone();
  std::ranges::fill(none.labels.values<std::int32_t>(), kIgnored);
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  for (const DevicePtr& device : devices()) {
    for (const int accumulate : {1, 2}) {
      for (const Precision precision : {Precision::fp32, Precision::fp16}) {
        INFO(device->info().id << ", " << accumulate << ", " << name_of(precision));
        const auto make = [&] {
          return Trainer{nn::Sequential{nn::Linear{kFeatures, kClasses}},
                         ignoring,
                         optim::Adam{.lr = 0.1},
                         device,
                         {.seed = 3, .accumulate = accumulate, .ema_decay = 0.9, .precision = precision}};
        };
        Trainer trainer = make();
        trainer.fit(classes_with_ignored(), {.batch = 5, .shuffle = false});
        const auto kept = [&] {
          std::map<std::string, std::vector<std::byte>> all = bytes_of(trainer);
          std::erase_if(all, [](const auto& entry) {
            return !entry.first.starts_with("0.") && !entry.first.starts_with("optim.0.") &&
                   !entry.first.starts_with("ema.") && entry.first != optim::kStep && entry.first != optim::kScale;
          });
          return all;
        };
        const auto before = kept();
        const History history = trainer.fit(none, {.batch = 5, .validate = none});
        CHECK(kept() == before);
        CHECK(std::isnan(history.epochs[0].loss));
        CHECK(std::isnan(history.epochs[0].validation->loss));
        trainer.fit(classes_with_ignored(), {.batch = 5, .shuffle = false});
        CHECK(kept() != before);
        trainer.save_checkpoint(path);
        Trainer resumed = make();
        resumed.resume(path);
        CHECK(resumed.steps_done() == trainer.steps_done());
      }
    }
  }
}

TEST_CASE("ignored labels count in no metric", "[train]") {
  const Dataset data = classes_with_ignored();
  const Loss ignoring = loss::CrossEntropy{.ignore_index = kIgnored};
  for (const DevicePtr& device : devices()) {
    for (const std::int64_t batch : {20, 3, 2}) {
      INFO(device->info().id << ", batches of " << batch);
      Trainer trainer{nn::Sequential{nn::Linear{kFeatures, kClasses}}, ignoring, optim::Sgd{}, device, {.seed = 3}};
      const Metrics metrics = trainer.evaluate(data, {.batch = batch, .k = 2});
      const Tensor outputs = trainer.predict(data);
      const Tensor matrix = confusion_matrix(outputs, data.labels, kIgnored);
      const auto counts = matrix.values<std::int32_t>();
      const double labels = std::accumulate(counts.begin(), counts.end(), 0.0);
      CHECK(labels == 11);  // of 20: 7 multiples of 3 are ignored, 4 and 5
      CHECK(metrics.accuracy.value() == Approx((counts[0] + counts[4] + counts[8]) / labels));
      CHECK(metrics.top_k.value() >= metrics.accuracy.value());
      CHECK(metrics.samples == kSamples);
      CHECK_THROWS_AS(confusion_matrix(outputs, data.labels), ArgumentError);
    }
    Trainer other{nn::Sequential{nn::Linear{kFeatures, kClasses}}, loss::cross_entropy, optim::Sgd{}, device};
    CHECK_THROWS_WITH(other.fit(data), contains("label -100 of sample 0"));
  }
}

TEST_CASE("a training with accumulation stops within a group and goes on to the same bits", "[train]") {
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  const Case one = cases()[3];
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    FitOptions options{.epochs = 3, .batch = 3};
    options.schedule = optim::schedule::exponential(0.9, optim::Unit::step);
    Trainer whole = trainer_of(one, device, {.accumulate = 4});
    const History history = whole.fit(one.data, options);
    CHECK(history.epochs[0].rate == Approx(0.02 * 0.9));  // 7 batches an epoch are 2 updates
    CHECK(history.epochs[2].rate == Approx(0.02 * std::pow(0.9, 5)));
    FitOptions part = options;
    part.checkpoint = path;
    part.max_steps = 9;
    Trainer stopped = trainer_of(one, device, {.accumulate = 4}), resumed = trainer_of(one, device, {.accumulate = 4});
    stopped.fit(one.data, part);
    resumed.resume(path);
    resumed.fit(one.data, options);
    CHECK(bytes_of(resumed) == bytes_of(whole));
  }
}
