// Metrics of a user's own: their values over batches of several sizes, where they appear, what may watch them.
#include <cmath>

#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// For a network that hands its input through. Absolute errors 1 0, 0 2, 4 0, 0 0, 0 10: 17 in all.
Dataset five_pairs() {
  return data::from_arrays(Tensor::of<float>(Shape{5, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
                           Tensor::of<float>(Shape{5, 2}, std::vector<float>{0, 2, 3, 6, 1, 6, 7, 8, 9, 0}));
}

Value absolute_error(Value outputs, Value targets) { return mean(abs(outputs - targets), {1}); }

/// As in docs/guide/your-own-layer-loss-optimizer.md.
Value among_first_5(Value outputs, Value labels) {
  const Value classes = top_k(outputs, 5).indices;  // i32 (N, 5)
  const Value is_label =
      pointwise("is_label", {classes, reshape(labels, {-1, 1})}, scalar::equal(scalar::input(0), scalar::input(1)));
  return sum(is_label, {1});  // (N), 1 or 0
}

}  // namespace

TEST_CASE("metrics count samples alike in batches of all sizes", "[train]") {
  const Dataset data = five_pairs();
  const NamedMetrics metrics{
      {"of samples", absolute_error},
      {"of elements", [](Value outputs, Value targets) { return abs(outputs - targets); }},
      {"of batches", loss::l1},
      {"whole numbers", [](Value outputs, Value targets) { return cast(abs(outputs - targets), DType::i32); }},
      {"total", [](Value outputs, Value targets) { return loss::total(sum(abs(outputs - targets))); }},
      {"weighted", [](Value outputs, Value targets) {
         return loss::weighted_mean(sum(abs(outputs - targets) * targets), sum(targets));
       }}};
  for (const DevicePtr& device : devices()) {
    Trainer trainer{nn::Sequential{nn::Flatten{}}, loss::mse, optim::Sgd{}, device};
    for (const std::int64_t batch : {1, 2, 3, 4, 5}) {  // but for 1 and 5, the last one is smaller
      INFO(device->info().id << ", batch " << batch);
      const Metrics result = trainer.evaluate(data, {.batch = batch, .metrics = metrics});
      CHECK(result.named.size() == metrics.size());
      for (const char* const name : {"of samples", "of elements", "of batches", "whole numbers"}) {
        INFO(name);
        CHECK(result.named.at(name) == Approx(1.7).epsilon(1e-6));
      }
      CHECK(result.named.at("total") == 17);
      CHECK(result.named.at("weighted") == Approx(16.0 / 42).epsilon(1e-6));
      CHECK(result.loss == Approx(12.1).epsilon(1e-6));
    }
    CHECK(trainer.evaluate(data).named.empty());
  }
}

TEST_CASE("metrics of one name are told apart", "[train]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{nn::Sequential{nn::Flatten{}}, loss::mse, optim::Sgd{}, device};
    for (const float factor : {1.0F, 2.0F, 3.0F}) {
      const Metric metric = [factor](Value outputs, Value targets) {
        return factor * absolute_error(outputs, targets);
      };
      for (int i = 0; i < 2; ++i) {
        const Metrics result = trainer.evaluate(five_pairs(), {.batch = 2, .metrics = {{"error", metric}}});
        CHECK(result.named.at("error") == Approx(1.7 * static_cast<double>(factor)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("a top-5 accuracy of one's own is the built-in one", "[train]") {
  const Dataset data = data::synthetic(Shape{6}, 20, 90);
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      INFO(device->info().id << ", resident " << resident);
      Trainer trainer{small_net(20), loss::cross_entropy, optim::Sgd{}, device, {.resident_fraction = resident}};
      const Metrics result = trainer.evaluate(data, {.batch = 16, .metrics = {{"top 5", among_first_5}}});
      CHECK(result.top_k.value() > 0);
      CHECK(result.named.at("top 5") == Approx(result.top_k.value()));
    }
  }
}

TEST_CASE("evaluations report the loss that is asked for, and the training keeps its own", "[train]") {
  const Dataset data = small_data(60), other = small_data(40, 1);
  const loss::CrossEntropy smoothed{.label_smoothing = 0.3F, .weights = {1, 3, 0.5F}};
  FitOptions fit{.epochs = 2, .batch = 20};
  fit.validate = other;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto trainer = [&](const Objective& evaluation) {
      return Trainer{small_net(), smoothed, optim::Sgd{.lr = 0.1}, device, {.seed = 4, .evaluation = evaluation}};
    };
    Trainer own = trainer({}), plain = trainer(loss::cross_entropy);
    const History first = own.fit(data, fit), second = plain.fit(data, fit);
    CHECK(bytes_of(own) == bytes_of(plain));
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(first.epochs[i].loss == second.epochs[i].loss);
      CHECK(first.epochs[i].validation->loss != second.epochs[i].validation->loss);
      CHECK(first.epochs[i].validation->accuracy == second.epochs[i].validation->accuracy);
    }
    const TemporaryFolder folder;
    plain.save(folder / "net");
    Trainer reader{small_net(), loss::cross_entropy, optim::Sgd{}, device};
    reader.load(folder / "net");
    CHECK(plain.evaluate(other).loss == reader.evaluate(other).loss);
  }
}

TEST_CASE("validations have the metrics of the fit", "[train]") {
  struct Listener : Callback {
    std::vector<double> heard;
    void on_epoch(const EpochReport& report) override { heard.push_back(report.validation->named.at("loss again")); }
  };
  const auto [train, held_out] = data::split(small_data(150), 50);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto listener = std::make_shared<Listener>();
    Trainer trainer = small_trainer(device);
    const History history = trainer.fit(
        train,
        {.epochs = 3, .validate = held_out, .metrics = {{"loss again", loss::cross_entropy}}, .callbacks = {listener}});
    REQUIRE(listener->heard.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(listener->heard[i] == Approx(history.epochs[i].validation->loss));
      CHECK(history.epochs[i].validation->named.at("loss again") == listener->heard[i]);
    }
  }
}

TEST_CASE("early stopping watches a metric by its name", "[train]") {
  const auto [train, held_out] = data::split(small_data(150), 50);
  const DevicePtr& device = devices().front();
  const auto history_of = [&](const Metric& metric, const EarlyStopping& early) {
    return small_trainer(device).fit(
        train, {.epochs = 12, .validate = held_out, .metrics = {{"own", metric}}, .early_stopping = early});
  };
  const Metric negative_loss = [](Value outputs, Value labels) { return -loss::cross_entropy(outputs, labels); };
  const Metric constant = [](Value outputs, Value) { return 0.0F * sum(outputs, {1}); };
  // The loss falls throughout.
  const History larger = history_of(negative_loss, {.metric = "own", .larger_is_better = true, .patience = 2});
  CHECK(larger.end == History::End::finished);
  CHECK(larger.best_epoch == 12);
  const History smaller = history_of(negative_loss, {.metric = "own", .patience = 2});
  CHECK(smaller.end == History::End::early);
  CHECK(smaller.best_epoch == 1);
  CHECK(smaller.epochs.size() == 3);
  CHECK(history_of(constant, {.metric = "own", .patience = 4}).epochs.size() == 5);
  CHECK_THROWS_AS(history_of(constant, {.metric = "another"}), ArgumentError);
}

TEST_CASE("wrong metrics are refused by name", "[train]") {
  const Dataset data = small_data(50);
  const auto evaluated = [&](const std::string& name, const Metric& metric) {
    return small_trainer(devices().front()).evaluate(data, {.batch = 20, .metrics = {{name, metric}}});
  };
  CHECK_THROWS_AS(evaluated("", loss::cross_entropy), ArgumentError);
  CHECK_THROWS_AS(evaluated("\xff", loss::cross_entropy), ArgumentError);
  CHECK_THROWS_AS(evaluated("none", {}), ArgumentError);
  CHECK_THROWS_WITH(evaluated("by class", [](Value outputs, Value) { return mean(outputs, {0}); }),
                    contains("'by class'") && contains("[3]"));
  CHECK_THROWS_WITH(evaluated("misfit", [](Value outputs, Value labels) { return outputs - labels; }),
                    contains("'misfit'"));
  Trainer trainer = small_trainer(devices().front());
  CHECK_THROWS_AS(trainer.fit(data, {.metrics = {{"loss", loss::cross_entropy}}}), ArgumentError);  // no validation
  CHECK_THROWS_AS(
      trainer.fit(
          data, {.validate = data, .metrics = {{"by class", [](Value outputs, Value) { return mean(outputs, {0}); }}}}),
      ShapeError);
}
