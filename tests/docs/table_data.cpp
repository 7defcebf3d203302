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

}  // namespace
}  // namespace concord
