// A Trainer on samples that are not in memory, on selections, and with mixed batches.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "concord/data/balanced_order.hpp"
#include "concord/data/selection.hpp"
#include "concord/train/cross_validation.hpp"
#include "concord/train/mixing.hpp"
#include "core/thrown.hpp"
#include "data/records/records_test.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// A user's own source: the samples of a data set, one at a time; some of them are damaged.
class OneAtATime final : public Samples {
 public:
  explicit OneAtATime(Dataset data, std::vector<std::int64_t> damaged = {})
      : data_(std::move(data)), damaged_(std::move(damaged)) {
    name = "own";
  }
  std::int64_t size() const override { return data_.size(); }
  std::vector<ColumnSpec> feature_specs() const override { return data_.feature_specs(); }
  std::vector<ColumnSpec> label_specs() const override { return data_.label_specs(); }
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
            const SampleRandom& random) const override {
    if (std::ranges::find(damaged_, row) != damaged_.end()) {
      throw FormatError("photo " + std::to_string(row) + " is cut off");
    }
    data_.read(row, columns, random);
  }
  std::optional<std::int32_t> class_of(std::int64_t row) const override { return data_.class_of(row); }

 private:
  Dataset data_;
  std::vector<std::int64_t> damaged_;
};

std::vector<std::int32_t> every_other(std::int64_t n) {
  std::vector<std::int32_t> rows;
  for (std::int32_t row = 0; row < n; row += 2) rows.push_back(row);
  return rows;
}

}  // namespace

TEST_CASE("samples that are read one at a time train to the same bits as those in memory", "[train][samples]") {
  const Dataset data = small_data(50);
  const OneAtATime own(data);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer in_memory = small_trainer(device), streamed = small_trainer(device);
    const History a = in_memory.fit(data, {.epochs = 2, .batch = 8, .validate = data});
    const History b = streamed.fit(own, {.epochs = 2, .batch = 8, .validate = own});
    CHECK(bytes_of(in_memory) == bytes_of(streamed));
    CHECK(a.epochs.back().loss == b.epochs.back().loss);
    CHECK(a.epochs.back().validation->accuracy == b.epochs.back().validation->accuracy);
    const Tensor x = in_memory.predict(data, 16), y = streamed.predict(own, 16);
    CHECK(std::ranges::equal(x.bytes(), y.bytes()));
  }
}

TEST_CASE("a training on samples goes on in the middle of an epoch with the same bits", "[train][samples]") {
  const OneAtATime own(small_data(50));
  const TemporaryFolder folder;
  const DevicePtr device = devices()[0];
  Trainer whole = small_trainer(device), first = small_trainer(device), second = small_trainer(device);
  whole.fit(own, {.epochs = 2, .batch = 8});
  first.fit(own, {.epochs = 2, .batch = 8, .max_steps = 9});
  first.save_checkpoint(folder / "c.safetensors");
  second.resume(folder / "c.safetensors");
  second.fit(own, {.epochs = 2, .batch = 8});
  CHECK(bytes_of(whole) == bytes_of(second));
}

TEST_CASE("a damaged sample is named, and another one takes its place", "[train][samples]") {
  const OneAtATime own(small_data(20), {3, 19});
  const DevicePtr device = devices()[0];
  WarningsHeard warnings;
  Trainer trainer = small_trainer(device);
  trainer.fit(own, {.epochs = 3, .batch = 8});
  CHECK(warnings.all().size() == 2);
  CHECK(warnings.one("own: photo 3 is cut off; another sample takes its place"));
  CHECK(warnings.one("photo 19 is cut off"));
  CHECK_THAT(thrown([&] { trainer.fit(own, {.epochs = 1, .batch = 8, .bad_samples = data::BadSamples::fail}); }),
             test::contains("is cut off"));
  // What is predicted must be the sample itself.
  CHECK_THROWS_AS(trainer.predict(own), FormatError);
}

TEST_CASE("damaged samples count in no evaluation, or end it", "[train][samples]") {
  const Dataset data = small_data(20);
  const OneAtATime own(data, {3, 19});
  std::vector<std::int32_t> rest;
  for (std::int32_t row = 0; row < 20; ++row) {
    if (row != 3 && row != 19) rest.push_back(row);
  }
  const DevicePtr device = devices()[0];
  Trainer trainer = small_trainer(device);
  trainer.fit(data, {.epochs = 1, .batch = 8});
  const Metrics expected = trainer.evaluate(data::subset(data, rest), {.batch = 8});
  WarningsHeard warnings;
  std::vector<std::int32_t> damaged;
  const auto note = [&](std::int32_t row) { damaged.push_back(row); };
  const Metrics metrics = trainer.evaluate(own, {.batch = 8, .left_out = note});
  CHECK(metrics.samples == 18);
  CHECK(metrics.loss == Approx(expected.loss));
  CHECK(metrics.accuracy == expected.accuracy);
  std::ranges::sort(damaged);
  CHECK(damaged == std::vector<std::int32_t>{3, 19});
  CHECK(warnings.one("own: photo 3 is cut off; it is left out"));
  // The rows are those of what is evaluated.
  damaged.clear();
  CHECK(trainer.evaluate(data::Selection(own, {5, 3, 4}), {.left_out = note}).samples == 2);
  CHECK(damaged == std::vector<std::int32_t>{1});
  CHECK(data::without_rows(data::Selection(own, {5, 3, 4}), damaged)->size() == 2);

  const auto fail = data::BadSamples::fail;
  CHECK_THROWS_AS(trainer.evaluate(own, {.batch = 8, .bad_samples = fail}), FormatError);
  CHECK_THROWS_AS(trainer.fit(data, {.epochs = 1, .batch = 8, .validate = own, .bad_samples = fail}), FormatError);
}

TEST_CASE("a validation names its damaged samples once", "[train][samples]") {
  const Dataset data = small_data(20);
  WarningsHeard warnings;
  Trainer trainer = small_trainer(devices()[0]);
  const History history = trainer.fit(data, {.epochs = 3, .batch = 8, .validate = OneAtATime(data, {3, 19})});
  for (const EpochReport& epoch : history.epochs) CHECK(epoch.validation->samples == 18);
  CHECK(warnings.all().size() == 2);
}

TEST_CASE("samples that are all damaged end the epoch", "[train][samples]") {
  std::vector<std::int64_t> all(20);
  std::iota(all.begin(), all.end(), 0);
  const OneAtATime own(small_data(20), all);
  WarningsHeard warnings;
  Trainer trainer = small_trainer(devices()[0]);
  CHECK_THROWS_AS(trainer.fit(own, {.epochs = 1, .batch = 8}), FormatError);
  CHECK(warnings.one("further damaged samples are counted, not named"));
}

TEST_CASE("a label outside the classes is found when its sample is read", "[train][samples]") {
  Dataset data = small_data(20);
  data.labels.values<std::int32_t>()[7] = 99;
  Trainer trainer = small_trainer(devices()[0]);
  CHECK_THAT(thrown([&] { trainer.fit(OneAtATime(data), {.epochs = 1, .batch = 8}); }),
             test::contains("own: label 99 of sample 7 is outside [0, 3)"));
}

TEST_CASE("selections of one data set train as copies of the rows, with one upload", "[train][samples]") {
  const Dataset data = small_data(60);
  const data::Selection half(data, every_other(60));
  const Dataset copied = data::subset(data, every_other(60));
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer selected = small_trainer(device), subset = small_trainer(device);
    const History a = selected.fit(half, {.epochs = 2, .batch = 8, .validate = half});
    const History b = subset.fit(copied, {.epochs = 2, .batch = 8, .validate = copied});
    CHECK(bytes_of(selected) == bytes_of(subset));
    CHECK(a.epochs.back().validation->loss == b.epochs.back().validation->loss);
    CHECK(selected.evaluate(data).loss == Approx(subset.evaluate(data).loss));
    const Tensor x = selected.predict(half), y = subset.predict(copied);
    CHECK(std::ranges::equal(x.bytes(), y.bytes()));
  }
}

TEST_CASE("cross-validation uploads a data set once, and each fold is validated on what it left out",
          "[train][samples]") {
  const Dataset data = small_data(61);
  const auto labels = data.labels.values<std::int32_t>();
  const auto folds = data::folds({labels.data(), labels.size()}, 3, 1);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const SharedSamples shared = data;
    const std::size_t before = data.device_copies->uploaded_bytes;
    std::int64_t validated = 0;
    const std::vector<FoldResult> results =
        cross_validate([&](int) { return small_trainer(device); }, shared, shared, folds, {.epochs = 3, .batch = 16});
    REQUIRE(results.size() == 3);
    for (const FoldResult& fold : results) validated += fold.metrics.samples;
    CHECK(validated == 61);
    CHECK(data.device_copies->uploaded_bytes - before == data.bytes());
  }
  const FoldStatistics s = statistics_of(std::vector{1.0, 2.0, 4.0});
  CHECK(s.mean == Approx(7.0 / 3));
  CHECK(s.deviation == Approx(1.5275252));
}

TEST_CASE("each fold may prepare the data by the rows that it trains on", "[train][samples]") {
  const Dataset data = small_data(30);
  const auto folds = data::folds(30, 3, 1);
  std::vector<std::vector<std::int32_t>> seen;
  const auto samples_for = [&](int fold, std::span<const std::int32_t> rows) -> FoldSamples {
    CHECK(fold == static_cast<int>(seen.size()));
    seen.emplace_back(rows.begin(), rows.end());
    Dataset own = data;
    own.name = std::to_string(fold);
    return {own, {}};
  };
  const auto make = [&](int fold) {
    CHECK(seen.size() == static_cast<std::size_t>(fold) + 1);  // after the samples
    return small_trainer(devices()[0]);
  };
  const auto results = cross_validate(make, samples_for, folds, {.epochs = 1, .batch = 8});
  REQUIRE(results.size() == 3);
  REQUIRE(seen.size() == 3);
  for (std::size_t fold = 0; fold < 3; ++fold) {
    CHECK(results[fold].metrics.samples == 10);
    CHECK(seen[fold].size() == 20);
    CHECK(std::ranges::is_sorted(seen[fold]));
    for (const std::int32_t row : folds[fold]) CHECK(std::ranges::find(seen[fold], row) == seen[fold].end());
  }
}

TEST_CASE("each channel has its own mean and deviation", "[train][samples]") {
  Dataset bytes;
  bytes.features = Tensor(DType::u8, {2, 3, 2, 2});
  const auto pixels = bytes.features.values<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(10 * i);
  bytes.labels = Tensor(DType::i32, {2});
  bytes.classes = 2;
  bytes.mean = {0.5F, 0.25F, 0};
  bytes.deviation = {0.5F, 2, 1};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer(nn::Sequential{nn::Flatten{}}, loss::cross_entropy, optim::Sgd{}, device);
    const Tensor seen = trainer.predict(bytes);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t channel = i / 4 % 3;
      const float expected = (static_cast<float>(pixels[i]) / 255 - bytes.mean[channel]) / bytes.deviation[channel];
      CHECK(seen.values<float>()[i] == Approx(expected).margin(1e-6));
    }
  }
  bytes.deviation = {1, 1};
  CHECK_THROWS_AS(data::check(bytes), ShapeError);
  bytes.deviation = {1, 0, 1};
  CHECK_THROWS_AS(data::check(bytes), ArgumentError);
}

TEST_CASE("a balanced epoch has every class equally often", "[data][samples]") {
  Dataset data = small_data(90);
  const auto labels = data.labels.values<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i < 80 ? 0 : i < 88 ? 1 : 2;
  const std::vector<std::int32_t> order = data::balanced_order(data, 1, 2);
  REQUIRE(order.size() == 90);
  std::vector<int> counts(3), of_rare(90);
  for (const std::int32_t row : order) {
    ++counts[static_cast<std::size_t>(labels[static_cast<std::size_t>(row)])];
    ++of_rare[static_cast<std::size_t>(row)];
  }
  CHECK(counts == std::vector{30, 30, 30});
  CHECK(of_rare[88] == 15);
  CHECK(of_rare[89] == 15);
  CHECK(data::balanced_order(data, 1, 2) == order);
  CHECK(data::balanced_order(data, 1, 3) != order);
  CHECK(data::class_counts(OneAtATime(data)) == std::vector<std::int64_t>{80, 8, 2});
  Trainer trainer = small_trainer(devices()[0]);
  CHECK_NOTHROW(trainer.fit(data, {.epochs = 1, .batch = 16, .balance = true}));
}

TEST_CASE("mixed batches are what mixup and CutMix are", "[train][samples]") {
  const std::int64_t n = 3;
  std::vector<float> values(static_cast<std::size_t>(n * 2 * 4 * 6));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 48) / 7 + static_cast<float>(i / 48);
  const Tensor images = Tensor::of(Shape{n, 2, 4, 6}, values);
  for (const DevicePtr& device : devices()) {
    for (const Mixing& mixing : {Mixing{.mixup = 0.4}, Mixing{.cutmix = 1}, Mixing{.mixup = 0.2, .cutmix = 1}}) {
      INFO(device->info().id << ", mixup " << mixing.mixup << ", cutmix " << mixing.cutmix);
      Graph graph;
      train::BatchValues batch;
      batch.features.add("", graph.input("x", images.spec()));
      batch.labels.add("", graph.input("y", {DType::i32, {n}}));
      const train::MixedBatch mixed = train::mix(graph, batch);
      const auto variables = std::make_shared<Variables>(device, 1);
      Program program = compile(graph, {mixed.features[0], mixed.partners[0], mixed.share}, variables);
      program.write("x", images);
      program.write("y", Tensor::of(Shape{n}, std::vector<std::int32_t>{5, 6, 7}));
      std::vector<float> shares;
      for (std::int64_t number = 0; number < 8; ++number) {
        train::write_mixing(*variables, mixing, Shape{2, 4, 6}, 3, 1, number);
        program.run();
        const Tensor partners = program.read(mixed.partners[0]), x = program.read(mixed.features[0]);
        CHECK(std::ranges::equal(partners.values<std::int32_t>(), std::vector<std::int32_t>{6, 7, 5}));
        const float share = program.read(mixed.share).values<float>()[0];
        shares.push_back(share);
        CHECK((share >= 0 && share <= 1));
        // Of what each pixel has of its own sample: the mean is the share in the loss.
        double own = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const float a = values[i], b = values[(i + 48) % values.size()];
          const float part = (x.values<float>()[i] - b) / (a - b);
          CHECK((part > -1e-4F && part < 1 + 1e-4F));
          own += static_cast<double>(part) / static_cast<double>(values.size());
        }
        CHECK(own == Approx(static_cast<double>(share)).margin(1e-4));
      }
      CHECK(*std::ranges::max_element(shares) > *std::ranges::min_element(shares));
    }
  }
}

TEST_CASE("mixing trains, repeats to the bit and refuses what it cannot mix", "[train][samples]") {
  const Dataset data = small_data(40);
  const DevicePtr device = devices()[0];
  const FitOptions options{.epochs = 2, .batch = 8, .mixing = {.mixup = 0.2}};
  Trainer a = small_trainer(device), b = small_trainer(device), plain = small_trainer(device);
  a.fit(data, options);
  b.fit(data, options);
  plain.fit(data, {.epochs = 2, .batch = 8});
  CHECK(bytes_of(a) == bytes_of(b));
  CHECK(bytes_of(a) != bytes_of(plain));
  CHECK_THROWS_AS(plain.fit(data, {.mixing = {.mixup = -1}}), ArgumentError);
  CHECK_THROWS_AS(plain.fit(data, {.mixing = {.cutmix = 1}}), ArgumentError);
}
