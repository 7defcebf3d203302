// Networks for several labels and targets of a table, and the words that name networks, weights and data.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Arguments train_animals(const std::string& data, const Arguments& more) {
  return with({"train", "mlp:width=8", "--data", data, "--device", cheap_device(), "--batch", "10", "--quiet"}, more);
}

/// Three kinds and two sizes, which the numbers tell apart, and a weight.
std::string animals() {
  std::string text = "length,colour,kind,size,weight\n";
  for (int i = 0; i < 150; ++i) {
    const auto kind = static_cast<std::size_t>(i % 3);
    text += fmt::format("{},{},{},{},{}\n", i % 3 * 10 + i % 7 / 4.0, i % 2 == 0 ? "red" : "blue",
                        std::array{"ant", "bee", "cat"}.at(kind), kind == 2 ? "large" : "small", 2.5 * (i % 3));
  }
  return text;
}

}  // namespace

TEST_CASE("a table with several labels and targets trains a network with an output for each", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_file(folder / "t.csv", animals());
  write_file(folder / "new.csv", "length,colour\n0.5,red\n20.5,blue\n");
  const std::string file = "csv:" + (folder / "t.csv").string(), weights = (folder / "w.safetensors").string();
  const std::string several = file + ",label=kind,size,target=weight";
  const Arguments device{"--device", cheap_device()};
  const Ended trained =
      run_command(train_animals(several, {"--epochs", "40", "--lr", "0.05", "--out", weights, "--json"}));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto metrics = nlohmann::json::parse(trained.out)["validation"]["metrics"];
  CHECK(metrics["kind.accuracy"] == 1.0);
  CHECK(metrics["size.accuracy"] == 1.0);
  CHECK(metrics["weight.loss"] < 1.0);

  const Ended evaluated = run_command(with({"evaluate", weights, file}, device));
  INFO(evaluated.err);
  CHECK_THAT(evaluated.out, test::contains("kind.accuracy 1, ") && test::contains("size.accuracy 1, "));
  const std::string unknown = "csv:" + (folder / "new.csv").string();
  const Ended predicted = run_command(with({"predict", weights, "--data", unknown, "--json"}, device));
  INFO(predicted.err);
  REQUIRE(predicted.code == 0);
  const auto answers = nlohmann::json::parse(predicted.out);
  CHECK(answers[0]["predictions"]["kind"]["name"] == "ant");
  CHECK(answers[0]["predictions"]["size"]["name"] == "small");
  CHECK(answers[1]["predictions"]["kind"]["name"] == "cat");
  CHECK(answers[1]["predictions"]["size"]["probability"] > 0.5);
  CHECK(answers[1]["predictions"]["weight"] > answers[0]["predictions"]["weight"]);
  const Ended csv = run_command(with({"predict", weights, "--data", unknown, "--format", "csv"}, device));
  CHECK_THAT(csv.out, test::contains("sample,kind,kind probability,size,size probability,weight\r\n0,ant,"));

  check_refusal(with({"predict", weights, "--data", unknown, "--top", "2"}, device), 2, {"--top", "several labels"});
  // A bad row stays in its place, and its label need not be a class.
  write_file(folder / "bad.csv", "length,colour,kind\n0.5,red,zebra\nlong,red,ant\n20.5,blue,\n");
  const Ended bad = run_command(with({"predict", weights, (folder / "bad.csv").string(), "--json"}, device));
  CHECK(bad.code == 1);
  CHECK_THAT(bad.err, test::contains("1 of 3 rows could not be predicted"));
  const auto rows = nlohmann::json::parse(bad.out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["predictions"]["kind"]["name"] == "ant");
  CHECK(rows[1] == nlohmann::json{{"sample", 1}, {"error", "line 3: column 'length': 'long' is no number"}});
  CHECK(rows[2]["predictions"]["kind"]["name"] == "cat");
  // Random data has the labels of the weights.
  const Ended random = run_command(with({"evaluate", weights, "random"}, device));
  INFO(random.err);
  CHECK_THAT(random.out, test::contains("kind.accuracy") && test::contains("weight.loss"));

  check_refusal(train_animals(several, {"--class-weights", "balanced"}), 2, {"--class-weights are for one label"});
  check_refusal(with({"evaluate", weights, file, "--confusion"}, device), 2, {"--confusion", "several labels"});
  check_refusal({"compare", "mlp:width=8", "--data", several, "--devices", cheap_device() + "," + cheap_device(),
                 "--steps", "1", "--save-case", (folder / "c.safetensors").string()},
                2, {"--save-case", "has several"});
  const Ended folds = run_command(with({"crossval", "mlp:width=8", "--data", several, "--folds", "3", "--epochs", "5",
                                        "--batch", "10", "--quiet", "--json"},
                                       device));
  INFO(folds.err);
  REQUIRE(folds.code == 0);
  const auto network = nlohmann::json::parse(folds.out)["networks"][0];
  CHECK(network["metrics"]["kind.accuracy"]["folds"].size() == 3);
  CHECK(network["metrics"]["weight.loss"]["mean"] > 0);
  // Two targets are one output.
  const Ended two = run_command(train_animals(file + ",target=length,weight,drop=kind,size", {"--out", weights}));
  INFO(two.err);
  REQUIRE(two.code == 0);
  const Ended numbers = run_command(with({"predict", weights, "--data", file, "--count", "1"}, device));
  CHECK_THAT(numbers.out, test::contains("length") && test::contains("weight"));
}

TEST_CASE("words name network, weights and data", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_file(folder / "t.csv", animals());
  const std::string file = "csv:" + (folder / "t.csv").string(), weights = (folder / "w.safetensors").string();
  REQUIRE(run_command(train_animals(file + ",label=kind,drop=size,weight", {"--out", weights})).code == 0);
  const Arguments device{"--device", cheap_device()};
  const std::string expected =
      run_command(with({"evaluate", "mlp:width=8", "--weights", weights, "--data", file}, device)).out;
  CHECK_THAT(expected, test::contains("150 samples"));
  for (const Arguments& words : {Arguments{weights, file}, Arguments{"mlp:width=8", weights, file},
                                 Arguments{weights, "--data", file}, Arguments{"--weights", weights, "--data", file}}) {
    const Ended ended = run_command(with(with({"evaluate"}, words), device));
    INFO(ended.err);
    CHECK(ended.out == expected);
  }
  const Ended predicted =
      run_command(with({"predict", "mlp:width=8", weights, "--data", file, "--count", "1"}, device));
  CHECK(predicted.code == 0);
  check_refusal({"evaluate", weights}, 2, {"evaluate needs data", "--data"});
  check_refusal({"evaluate", weights, file, "more"}, 2, {"'more' is one word too many"});
  check_refusal({"evaluate", "mlp", file}, 2, {"evaluate needs weights", "--weights FILE"});
  check_refusal({"predict", "mlp", "photo.jpg"}, 2, {"predict needs weights"});
  check_refusal({"predict"}, 2, {"predict needs weights"});
  check_refusal({"evaluate"}, 2, {"evaluate needs weights"});

  // A comparison may begin with the weights.
  const Ended compared =
      run_command({"compare", "mlp:width=8", "--data", file + ",label=kind", "--weights", weights, "--devices",
                   cheap_device() + "," + cheap_device(), "--steps", "2", "--seconds", "0.01", "--json"});
  INFO(compared.err);
  CHECK(compared.code == 0);
  check_refusal({"compare", "all", "--weights", weights, "--devices", cheap_device()}, 2, {"not of 'all'"});
}
