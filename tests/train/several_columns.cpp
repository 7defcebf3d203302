// Networks with several inputs and outputs through the trainer: columns, losses, metrics, masks, checkpoints.
#include <cmath>

#include "core/thrown.hpp"
#include "files.hpp"
#include "train/two_towers.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Trainer trainer_on(const DevicePtr& device, double resident = 0.4) {
  return Trainer{
      TwoTowers{}, two_losses(), optim::Adam{.lr = 0.01}, device, {.seed = 3, .resident_fraction = resident}};
}

}  // namespace

TEST_CASE("a network with several inputs and losses is trained and evaluated, with metrics for each output",
          "[train]") {
  const Dataset data = two_columns();
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer = trainer_on(device);
    FitOptions options{.epochs = 15, .batch = 16, .validate = data};
    options.early_stopping = EarlyStopping{.metric = "class.accuracy", .larger_is_better = true, .patience = 20};
    const History history = trainer.fit(data, options);
    CHECK(history.epochs.back().loss < 0.6 * history.epochs.front().loss);
    const Metrics metrics = trainer.evaluate(data, {.batch = 16});
    CHECK_FALSE(metrics.accuracy);
    REQUIRE(metrics.named.size() == 3);
    CHECK(metrics.named.at("class.accuracy") > 0.7);
    CHECK(metrics.loss == Approx(metrics.named.at("class.loss") + 0.5 * metrics.named.at("number.loss")).epsilon(1e-5));

    const auto outputs = trainer.predict_values(data, 16);
    const Tensor classes = outputs.at("class"), numbers = outputs.at("number");
    CHECK(classes.shape() == Shape{40, 3});
    double squares = 0, hits = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      const float difference = numbers.values<float>()[i] - data.more_labels[0].values.values<float>()[i];
      squares += static_cast<double>(difference) * static_cast<double>(difference) / 40;
      const auto row = classes.values<float>().subspan(3 * i, 3);
      const auto best = std::ranges::max_element(row) - row.begin();
      hits += best == data.labels.values<std::int32_t>()[i] ? 1 : 0;
    }
    CHECK(metrics.named.at("number.loss") == Approx(squares).epsilon(1e-4));
    CHECK(metrics.named.at("class.accuracy") == Approx(hits / 40));
  }
}

TEST_CASE("streamed columns, columns by position and a resumed training give the same bits", "[train]") {
  const Dataset data = two_columns(37);
  Dataset by_position = data;
  by_position.feature_name.clear();
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const FitOptions options{.epochs = 2, .batch = 8};
    Trainer resident = trainer_on(device), streamed = trainer_on(device, 0), placed = trainer_on(device);
    resident.fit(data, options);
    streamed.fit(data, options);
    placed.fit(by_position, options);
    CHECK(bytes_of(resident) == bytes_of(streamed));
    CHECK(bytes_of(resident) == bytes_of(placed));

    Trainer stopped = trainer_on(device), resumed = trainer_on(device, 0);
    stopped.fit(data, {.epochs = 2, .batch = 8, .max_steps = 3});
    stopped.save_checkpoint(folder / "run.safetensors");
    resumed.resume(folder / "run.safetensors");
    resumed.fit(data, options);
    CHECK(bytes_of(resident) == bytes_of(resumed));
  }
}

TEST_CASE("padding behind the lengths of a sequence changes nothing", "[train]") {
  Dataset data = two_columns(10);
  Dataset other = data;
  other.more_features[0].values = data.more_features[0].values.clone();
  const auto lengths = data.more_features[1].values.values<std::int32_t>();
  auto words = other.more_features[0].values.values<float>();
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t at = static_cast<std::size_t>(lengths[i]) * 4; at < 20; ++at) words[i * 20 + at] = 0;
  }
  for (const DevicePtr& device : devices()) {
    // Queries of padding differ, so the mean over the sequence does too; the keys are compared.
    struct Keys : nn::Module {
      nn::MultiheadAttention attention{4, 2};
      [[nodiscard]] Values forward_values(const Values& in) override {
        const Value all = attention(in["words"], {.lengths = in["lengths"]});
        return slice(all, 1, 0, 1);
      }
    };
    Dataset a, b;
    for (const auto& [to, from] : {std::pair(&a, &data), std::pair(&b, &other)}) {
      to->features = from->more_features[0].values;
      to->feature_name = "words";
      to->more_features = {from->more_features[1]};
    }
    Trainer trainer{Keys{}, loss::mse, optim::Sgd{}, device};
    CHECK(std::ranges::equal(trainer.predict(a).bytes(), trainer.predict(b).bytes()));
  }
}

TEST_CASE("an objective of all outputs joins them", "[train]") {
  const Dataset data = two_columns(16);
  const auto joined = [](const Values& outputs, const Values& targets) {
    return loss::cross_entropy(outputs["class"], targets["class"]) + 0.5F * loss::mse(outputs[1], targets["number"]);
  };
  for (const DevicePtr& device : devices()) {
    Trainer listed = trainer_on(device);
    Trainer free{TwoTowers{}, joined, optim::Adam{.lr = 0.01}, device, {.seed = 3}};
    const FitOptions options{.epochs = 2, .batch = 8};
    CHECK(listed.fit(data, options).epochs[1].loss == Approx(free.fit(data, options).epochs[1].loss).epsilon(1e-6));
    const Metrics metrics =
        free.evaluate(data, {.metrics = {{"difference", [](const Values& outputs, const Values& targets) {
                                            return loss::l1(outputs["number"], targets["number"]);
                                          }}}});
    CHECK(metrics.named.size() == 1);
  }
}

TEST_CASE("mistakes with columns and losses are named", "[train]") {
  const Dataset data = two_columns(8);
  const DevicePtr& device = devices().front();
  const auto error_of = [&](const Dataset& set, const Objective& objective = two_losses()) {
    return thrown([&] {
      Trainer trainer{TwoTowers{}, objective, optim::Sgd{}, device};
      static_cast<void>(trainer.fit(set, {.batch = 4}));
    });
  };
  CHECK_THAT(error_of(data, loss::cross_entropy), contains("2 outputs (class, number)"));
  CHECK_THAT(error_of(data, {{"class", loss::cross_entropy}, {"box", loss::mse}}),
             contains("the output 'box'") && contains("class, number"));
  Dataset wrong = data;
  wrong.more_features[0].name = "word";
  CHECK_THAT(error_of(wrong), contains("'word' is not one of vector, words, lengths"));
  wrong = data;
  wrong.more_features.pop_back();
  CHECK_THAT(error_of(wrong), contains("no value 'lengths' among vector, words"));
  wrong = data;
  wrong.more_labels[0].name = "class";
  CHECK_THAT(error_of(wrong), contains("two columns of its labels are named 'class'"));
  wrong = data;
  wrong.more_labels[0].name.clear();
  CHECK_THAT(error_of(wrong), contains("column 1 of its labels needs a name"));
  wrong = data;
  wrong.more_labels[0].values = Tensor(DType::f32, {7, 1});
  CHECK_THAT(error_of(wrong), contains("labels 'number' have 7 samples, expected 8"));
  wrong = data;
  wrong.classes = 2;
  CHECK_THAT(error_of(wrong), contains("labels 'class': label 2 of sample 2 is outside [0, 2)"));
  wrong = data;
  wrong.classes = 9;
  CHECK_THAT(error_of(wrong), contains("labels up to 8") && contains("3 outputs"));
  CHECK_THAT(thrown([] { Objective{{"a", loss::mse}, {"a", loss::l1}}; }), contains("two losses of the output 'a'"));
  CHECK_THAT(thrown([] { Objective{{"a", loss::mse, NAN}}; }), contains("weight nan"));
  Trainer trainer = trainer_on(device);
  CHECK_THAT(thrown([&] { static_cast<void>(trainer.predict(data)); }), contains("2 outputs; use predict_values"));
}

TEST_CASE("a filled last batch repeats the first samples of the epoch", "[train]") {
  const Dataset data = small_data(11);
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      INFO(device->info().id << ", resident " << resident);
      Trainer trainer{nn::Sequential{nn::Linear{6, 3}},
                      loss::cross_entropy,
                      optim::Sgd{.lr = 0},
                      device,
                      {.seed = 1, .resident_fraction = resident}};
      const History filled = trainer.fit(data, {.batch = 4, .shuffle = false, .last_batch = LastBatch::pad});
      CHECK(filled.epochs[0].steps == 3);
      const double all = trainer.evaluate(data).loss, first = trainer.evaluate(data::slice(data, 0, 1)).loss;
      CHECK(filled.epochs[0].loss == Approx((11 * all + first) / 12).epsilon(1e-5));
    }
  }
}
