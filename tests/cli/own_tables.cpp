// Tables through the command: encodings by the rows of training alone, options and warnings.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/concord.hpp"
#include "concord/data/folds.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// 40 rows with the classes 0 and 1; those of `extreme` have numbers and a town that no other has.
std::string extreme_table(std::span<const std::int32_t> extreme) {
  std::string text = "x,town,y\n";
  for (std::int32_t row = 0; row < 40; ++row) {
    const bool is_extreme = std::ranges::find(extreme, row) != extreme.end();
    text += fmt::format("{},{},{}\n", is_extreme ? 1'000'000 : row % 4, is_extreme ? "Rome" : "Oslo", row % 2);
  }
  return text;
}

data::CsvEncoding encoding_in(const std::filesystem::path& weights) {
  return data::csv_encoding_from_json(weights::File(weights).metadata().at("concord.table"));
}

void check_is_not_extreme(const data::CsvEncoding& encoding) {
  CHECK(encoding.inputs.at(0).mean < 4);
  CHECK(encoding.inputs.at(0).deviation < 4);
  CHECK(encoding.inputs.at(1).values == std::vector<std::string>{"Oslo"});
}

Arguments train_table(const std::string& data, const Arguments& more) {
  return with({"train", "mlp:width=8", "--data", data, "--device", cheap_device(), "--batch", "10", "--quiet"}, more);
}

std::size_t times(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("rows that are held out of a training do not change how a table is encoded", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto [train, held_out] = data::split_rows(40, 10, "t", 7);
  write_file(folder / "t.csv", extreme_table(held_out));
  const std::string data = fmt::format("csv:{},label=y", (folder / "t.csv").string());
  const std::string weights = (folder / "w.safetensors").string();
  const Arguments split{"--validation-split", "0.25", "--validation-seed", "7", "--out", weights};
  const Ended ended = run_command(train_table(data, with(split, {"--json"})));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(nlohmann::json::parse(ended.out)["validation"]["samples"] == 10);
  check_is_not_extreme(encoding_in(weights));
  CHECK(times(ended.err, "the column 'town' has 10 values that training never saw") == 1);
  // Without rows that are held out all of them count.
  REQUIRE(run_command(train_table(data, {"--validate", "none", "--out", weights})).code == 0);
  CHECK(encoding_in(weights).inputs.at(0).mean > 1000);
  CHECK(encoding_in(weights).inputs.at(1).values == std::vector<std::string>{"Oslo", "Rome"});
}

TEST_CASE("rows that are held out do not change balanced weights of classes", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto [train, held_out] = data::split_rows(40, 10, "t", 7);
  std::vector<int> labels(40, 0);  // all that are held out, and 10 others
  for (std::size_t i = 10; i < train.size(); ++i) labels[static_cast<std::size_t>(train[i])] = 1;
  std::string text = "x,y\n";
  for (std::size_t row = 0; row < 40; ++row) text += fmt::format("{},{}\n", row % 7, labels[row]);
  write_file(folder / "t.csv", text);
  const std::string data = fmt::format("csv:{},label=y", (folder / "t.csv").string());
  const auto loss_with = [&](const std::string& weights) {
    const Ended ended = run_command(train_table(
        data, {"--validation-split", "0.25", "--validation-seed", "7", "--class-weights", weights, "--json"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out)["train"]["loss"].get<double>();
  };
  CHECK(loss_with("balanced") == loss_with("1.5,0.75"));
  CHECK(loss_with("balanced") != loss_with("1,1"));
}

TEST_CASE("a checkpoint of any name is evaluated on the file of a table", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string table = (folder / "t.csv").string(), checkpoint = (folder / "run.ckpt").string();
  write_file(table, extreme_table({}));
  REQUIRE(run_command(train_table(fmt::format("csv:{},label=y", table), {"--checkpoint", checkpoint})).code == 0);
  const Ended ended = run_command({"evaluate", checkpoint, table, "--device", cheap_device()});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("40 samples, loss "));
}

TEST_CASE("each fold of a cross-validation encodes a table by its own rows", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::vector<std::int32_t> labels;
  for (std::int32_t row = 0; row < 40; ++row) labels.push_back(row % 2);
  const auto folds = data::folds(labels, 4, 5);
  write_file(folder / "t.csv", extreme_table(folds[0]));
  const Ended ended = run_command(
      {"crossval", "mlp:width=8", "--data", fmt::format("csv:{},label=y", (folder / "t.csv").string()), "--folds", "4",
       "--fold-seed", "5", "--batch", "10", "--device", cheap_device(), "--quiet", "--out", (folder / "w").string()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto weights = [&](int fold) { return folder / fmt::format("w/mlp-width=8-fold{}.safetensors", fold); };
  check_is_not_extreme(encoding_in(weights(1)));  // which leaves out the first fold
  CHECK(encoding_in(weights(2)).inputs.at(0).mean > 1000);
}

TEST_CASE("a target of large numbers is learnt and predicted in its own units", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto price = [](int rooms, int size) { return 150'000 + 60'000 * rooms + 2'000 * size; };
  std::string text = "rooms,size,kind,price\n";
  for (int i = 0; i < 120; ++i) {
    const int rooms = i % 5, size = i * 7 % 60;
    text += fmt::format("{},{},{},{}\n", rooms, size, i % 2 == 0 ? "flat" : "house", price(rooms, size));
  }
  const std::filesystem::path table = folder / "t.csv", weights = folder / "w.safetensors", onnx = folder / "w.onnx";
  write_file(table, text);
  for (const std::string columns : {"target=price", "label=kind,target=price"}) {
    INFO(columns);
    const Ended trained = run_command(
        train_table(fmt::format("csv:{},{}", table.string(), columns),
                    {"--optimizer", "adam", "--lr", "0.02", "--epochs", "40", "--validate", "none", "--out", weights}));
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const Ended predicted = run_command({"predict", weights, table, "--json", "--device", cheap_device()});
    INFO(predicted.out << predicted.err);
    REQUIRE(predicted.code == 0);
    const nlohmann::json rows = nlohmann::json::parse(predicted.out);
    REQUIRE(rows.size() == 120);
    for (const int i : {0, 33, 119}) {
      const double found = rows[static_cast<std::size_t>(i)]["predictions"]["price"].get<double>();
      CHECK(found == Approx(price(i % 5, i * 7 % 60)).margin(25'000));
    }
    // The file of another table needs no kind before it, and all rows are evaluated where there are no parts.
    const Ended evaluated = run_command({"evaluate", weights, table, "--json", "--device", cheap_device()});
    REQUIRE(evaluated.code == 0);
    const nlohmann::json metrics = nlohmann::json::parse(evaluated.out);
    CHECK(metrics["split"] == "all");
    CHECK(metrics["loss"].get<double>() < 0.8);
    double absolute = 0, squared = 0, sum = 0, squares = 0;
    for (int i = 0; i < 120; ++i) {
      const double target = price(i % 5, i * 7 % 60);
      const double error = rows[static_cast<std::size_t>(i)]["predictions"]["price"].get<double>() - target;
      absolute += std::abs(error);
      squared += error * error;
      sum += target;
      squares += target * target;
    }
    CHECK(metrics["metrics"]["mean absolute error of price"].get<double>() == Approx(absolute / 120).epsilon(1e-4));
    const double r2 = 1 - squared / (squares - sum * sum / 120);
    CHECK(metrics["metrics"]["R2 of price"].get<double>() == Approx(r2).epsilon(1e-3));
    CHECK_FALSE(metrics["metrics"].contains("squared error of price"));
  }
}

TEST_CASE("options and warnings of tables", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string names = "name,x,y\n", bad = "x,z,y\n";
  for (int i = 0; i < 60; ++i) {
    names += fmt::format("n{},{},{}\n", i, i, i % 2);
    bad += i == 5 ? "1\n" : fmt::format("{},2,{}\n", i, i % 2);
  }
  write_file(folder / "names.csv", names);
  write_file(folder / "bad.csv", bad);
  const std::string many = "csv:" + (folder / "names.csv").string() + ",label=y";
  check_refusal(train_table(many + ",most_categories=50", {}), 1, {"name"});
  CHECK(run_command(train_table(many + ",most_categories=60", {})).code == 0);
  check_refusal(train_table(many + ",most_categories=0", {}), 2, {"most_categories=0 is no number from 1 to"});
  const Ended skipped = run_command(train_table("csv:" + (folder / "bad.csv").string() + ",label=y", {}));
  INFO(skipped.err);
  CHECK(skipped.code == 0);
  CHECK(times(skipped.err, "1 bad row is left out: line 7: 1 field, but") == 1);
}
