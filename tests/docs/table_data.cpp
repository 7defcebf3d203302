// The programs of docs/guide/table-data.md.
#include "guide_test.hpp"

namespace concord {
namespace {

TEST_CASE("guide: a table as a data set", "[docs]") {
  const test::InEmptyFolder folder;
  std::string table = "rooms,town,kind\n";
  for (int i = 0; i < 100; ++i) {
    table += std::to_string(1 + i % 7) + (i % 3 == 0 ? ",Oslo," : ",Bergen,") + (i % 7 > 3 ? "house\n" : "flat\n");
  }
  test::write_file("houses.csv", table);
  test::write_file("new.csv", "town,rooms\nOslo,2\nPorto,\n");
  const DevicePtr device = test::guide_device();
  // [csv]
  const auto [houses, encoding] = data::csv("houses.csv", {.labels = {"kind"}});
  const auto width = houses.features.shape()[1];  // rooms, and for town one for each value and one for others
  nn::Sequential net{nn::Linear{static_cast<int>(width), 16}, nn::ReLU{}, nn::Linear{16, houses.classes}};
  Trainer trainer{
      net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device, {.metadata = {{"encoding", data::to_json(encoding)}}}};
  trainer.fit(houses, {.epochs = 20, .batch = 20});

  const Dataset unknown = data::csv("new.csv", {}, &encoding).first;  // the columns in any order, without "kind"
  const Tensor logits = trainer.predict(unknown.features);
  // [end]
  CHECK(trainer.evaluate(houses).accuracy.value() > 0.9);
  CHECK(width == 4);
  CHECK(logits.shape() == Shape{2, 2});
  CHECK(logits.values<float>()[0] > logits.values<float>()[1]);  // flat, house
  CHECK(data::csv_encoding_from_json(data::to_json(encoding)) == encoding);
}

TEST_CASE("guide: a table for training and validation", "[docs]") {
  const test::InEmptyFolder folder;
  std::string table = "rooms,town,kind\n";
  for (int i = 0; i < 120; ++i) {
    table += std::to_string(1 + i % 7) + (i % 3 == 0 ? ",Oslo," : ",Bergen,") + (i % 7 > 3 ? "house\n" : "flat\n");
  }
  test::write_file("houses.csv", table);
  const DevicePtr device = test::guide_device();
  // [split]
  const data::CsvSplit houses = data::csv_split("houses.csv", {.labels = {"kind"}}, 20);  // 20 rows held out
  const auto width = static_cast<int>(houses.encoding.feature_names().size());
  nn::Sequential net{nn::Linear{width, 16}, nn::ReLU{}, nn::Linear{16, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(*houses.train, {.epochs = 20, .batch = 20, .validate = houses.held_out});
  // [end]
  CHECK(trainer.evaluate(*houses.held_out).accuracy.value() > 0.8);
  std::vector<double> accuracies;
  // [folds]
  const data::CsvOptions options{.labels = {"kind"}};
  const data::CsvTable rows = data::read_csv("houses.csv", options);
  const auto samples_for = [&](int, std::span<const std::int32_t> train) -> FoldSamples {
    return {data::encode_csv(rows, data::fit_csv(rows, options, train)), {}};
  };
  const auto make = [&](int) {
    return Trainer{nn::Sequential{nn::Linear{width, 16}, nn::ReLU{}, nn::Linear{16, 2}}, loss::cross_entropy,
                   optim::Adam{.lr = 1e-2}, device};
  };
  const FitOptions fit{.epochs = 20, .batch = 20};
  for (const FoldResult& fold : cross_validate(make, samples_for, data::folds(rows.rows, 3), fit)) {
    accuracies.push_back(fold.metrics.accuracy.value());
  }
  // [end]
  CHECK(accuracies.size() == 3);
  CHECK(statistics_of(accuracies).mean > 0.8);
}

}  // namespace
}  // namespace concord
