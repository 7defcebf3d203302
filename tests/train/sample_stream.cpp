// Streams of unknown size: what a shuffle buffer gives, and trainings that can be repeated and continued.
#include "concord/data/sample_stream.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "concord/data/selection.hpp"
#include "core/thrown.hpp"
#include "data/records/records_test.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The samples of a data set, pass after pass. Sample `failing` of all that are read throws.
class SetStream final : public data::SampleStream {
 public:
  explicit SetStream(Dataset data, std::int64_t failing = -1) : data_(std::move(data)), failing_(failing) {
    name = "stream";
  }
  std::vector<ColumnSpec> feature_specs() const override { return data_.feature_specs(); }
  std::vector<ColumnSpec> label_specs() const override { return data_.label_specs(); }
  void start(std::int64_t) override {
    row_ = 0;
    ++starts;
  }
  bool next(std::span<const std::span<std::byte>> columns) override {
    if (failing_ >= 0 && failing_-- == 0) throw FormatError("the cable was cut");
    if (row_ == data_.size()) return false;
    data_.read(row_++, columns, {});
    return true;
  }
  std::int64_t starts = 0;

 private:
  Dataset data_;
  std::int64_t row_ = 0, failing_;
};

/// Sample i has the feature i.
Dataset counted(std::int64_t samples) {
  Tensor features(DType::f32, Shape{samples, 1}), labels(DType::i32, Shape{samples});
  const auto values = features.values<float>();
  std::iota(values.begin(), values.end(), 0.0F);
  return data::from_arrays(features, labels, 1);
}

data::StreamedSamples streamed(const Dataset& data, std::int64_t epoch, std::int64_t buffer) {
  return {std::make_shared<SetStream>(data), {.epoch = epoch, .buffer = buffer}};
}

/// The features of rows, as a training with this seed reads them in an epoch.
std::vector<float> read_stream(const Samples& samples, std::vector<std::int32_t> rows, std::uint64_t seed,
                               std::uint32_t epoch = 0) {
  const Dataset read = data::read_rows(samples, rows, seed, epoch);
  const auto values = read.features.values<float>();
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> rows_to(std::int32_t count) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

TEST_CASE("a buffer shuffles a stream, and one of a single sample does not", "[train][samples]") {
  const Dataset data = counted(10);
  const std::vector<float> plain = read_stream(streamed(data, 25, 1), rows_to(25), 1);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(plain[i] == static_cast<float>(i % 10));
  const data::StreamedSamples samples = streamed(data, 25, 4);
  const std::vector<float> shuffled = read_stream(samples, rows_to(25), 1);
  CHECK(shuffled != plain);
  CHECK(read_stream(samples, rows_to(25), 1) == shuffled);  // from the beginning again
  CHECK(read_stream(samples, rows_to(25), 2) != shuffled);
  const std::vector<float> second = read_stream(samples, rows_to(25), 1, 1);
  CHECK(second != shuffled);
  // No sample is lost: in any number of passes each has come as often as the buffer allows.
  std::vector<int> counts(10);
  for (const auto* epoch : {&shuffled, &second}) {
    for (const float value : *epoch) ++counts.at(static_cast<std::size_t>(value));
  }
  for (const int count : counts) CHECK((count >= 4 && count <= 6));
}

TEST_CASE("threads may fetch the samples of a stream in any order", "[train][samples]") {
  const data::StreamedSamples samples = streamed(counted(10), 20, 3);
  const std::vector<float> expected = read_stream(samples, rows_to(20), 1);
  std::vector<std::int32_t> rows = rows_to(20);
  samples.start({1, 0, 0}, {});
  std::rotate(rows.begin() + 4, rows.begin() + 7, rows.begin() + 12);
  const std::vector<float> read = read_stream(samples, rows, 1);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(read[i] == expected[static_cast<std::size_t>(rows[i])]);
}

TEST_CASE("a stream keeps the samples that are read later, and no others", "[train][samples]") {
  const auto stream = std::make_shared<SetStream>(counted(30));
  const data::StreamedSamples samples(stream, {.epoch = 20, .buffer = 3});
  const std::vector<float> all = read_stream(samples, rows_to(20), 1);
  const std::vector<std::int32_t> wanted{1, 4, 7, 13};  // as a rank has them
  samples.start({1, 0, 1}, wanted);
  const std::int64_t starts = stream->starts;
  CHECK(read_stream(samples, {13, 4, 1, 7}, 1) == std::vector<float>{all[13], all[4], all[1], all[7]});
  CHECK(stream->starts == starts);
  CHECK(read_stream(samples, {5}, 1) == std::vector<float>{all[5]});
  CHECK(stream->starts == starts + 1);  // it had to read from the beginning
}

TEST_CASE("a training on a stream has the same bits for any threads, and when it goes on", "[train][samples]") {
  const Dataset data = small_data(37);
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto trained = [&](int threads) {
      Trainer trainer = small_trainer(device);
      trainer.fit(streamed(data, 40, 16), {.epochs = 2, .batch = 8, .loader_threads = threads});
      return bytes_of(trainer);
    };
    const auto expected = trained(1);
    CHECK(trained(4) == expected);
    Trainer first = small_trainer(device), second = small_trainer(device);
    first.fit(streamed(data, 40, 16), {.epochs = 2, .batch = 8, .max_steps = 7});
    first.save_checkpoint(folder / "c.safetensors");
    second.resume(folder / "c.safetensors");
    second.fit(streamed(data, 40, 16), {.epochs = 2, .batch = 8});
    CHECK(bytes_of(second) == expected);
    CHECK(first.evaluate(streamed(data, 37, 1)).samples == 37);
    CHECK(first.evaluate(streamed(data, 37, 1)).loss == Approx(first.evaluate(data).loss));
  }
}

TEST_CASE("what a stream cannot do is refused, and its errors end a training", "[train][samples]") {
  const Dataset data = small_data(20);
  Trainer trainer = small_trainer(devices()[0]);
  CHECK_THAT(thrown([&] { trainer.fit(streamed(data, 20, 4), {.balance = true}); }), test::contains("is a stream"));
  CHECK_THAT(thrown([&] { trainer.fit(streamed(data, 20, 4), {.batch = 8, .last_batch = LastBatch::pad}); }),
             test::contains("is a stream"));
  CHECK_THAT(thrown([&] { trainer.fit(streamed(data, 20, 4), {.nan_trace = true}); }), test::contains("is a stream"));
  CHECK_THROWS_AS(data::Selection(streamed(data, 20, 4), {0}), ArgumentError);
  CHECK_THROWS_AS(streamed(data, 0, 4), ArgumentError);
  CHECK_THROWS_AS(streamed(data, 20, 0), ArgumentError);
  CHECK_THROWS_AS(data::StreamedSamples(nullptr, {.epoch = 1}), ArgumentError);

  // No thread of the loader reads the source again from its begin.
  const auto source = std::make_shared<SetStream>(data, 30);
  const data::StreamedSamples cut(source, {.epoch = 20, .buffer = 4});
  CHECK_THAT(thrown([&] { trainer.fit(cut, {.epochs = 3, .batch = 8, .loader_threads = 4}); }),
             test::contains("stream: the cable was cut"));
  CHECK(source->starts == 2);
  CHECK_THROWS_WITH(read_stream(cut, {3}, 1), test::contains("the cable was cut"));
  class Empty final : public data::SampleStream {
   public:
    std::vector<ColumnSpec> feature_specs() const override { return {{"", {DType::f32, Shape{6}}}}; }
    std::vector<ColumnSpec> label_specs() const override { return {{"", {DType::i32, Shape{}}, 1, 0, 3}}; }
    void start(std::int64_t) override {}
    bool next(std::span<const std::span<std::byte>>) override { return false; }
  };
  const data::StreamedSamples empty(std::make_shared<Empty>(), {.epoch = 8});
  Trainer fresh = small_trainer(devices()[0]);
  CHECK_THAT(thrown([&] { fresh.fit(empty, {.batch = 8}); }), test::contains("pass 0 through the stream has no"));
}
