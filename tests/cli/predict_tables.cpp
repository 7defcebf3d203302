// Predictions for rows of tables: of files and of --data, with bad rows, with labels and without.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Weights that tell "low" from "high" by the number x.
std::string train_on_table(const TemporaryFolder& folder, const std::string& label = "level",
                           const Arguments& more = {}) {
  std::string text = fmt::format("x,colour,{}\n", label);
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},{},{}\n", i, i % 2 == 0 ? "red" : "blue", i < 50 ? "low" : "high");
  write_file(folder / "t.csv", text);
  const std::string weights = (folder / "w.safetensors").string();
  const Ended trained = run_command(
      with({"train", "mlp:width=8", "--data", fmt::format("csv:{},label={}", (folder / "t.csv").string(), label),
            "--epochs", "40", "--lr", "0.05", "--batch", "10", "--quiet", "--device", cheap_device(), "--out", weights},
           more));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  return weights;
}

nlohmann::json json_of(const Ended& ended) {
  INFO(ended.err);
  return nlohmann::json::parse(ended.out);
}

}  // namespace

TEST_CASE("rows of a table keep their numbers, whatever their labels, and bad ones their place", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string weights = train_on_table(folder);
  const Arguments device{"--device", cheap_device()};
  write_file(folder / "new.csv",
             "x,colour,level\n1,red,\n2,blue,unheard of\nmuch,red,low\n99,red,high\n98,blue,low\n5\n");
  const std::string file = (folder / "new.csv").string();
  const std::string csv = "sample,predicted,probability,label,correct,error\r\n0,low,";
  for (const Arguments& words : {Arguments{file}, Arguments{"--data", "csv:" + file}}) {
    const Arguments command = with(with({"predict", weights}, words), device);
    const Ended ended = run_command(with(command, {"--json"}));
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains("2 of 6 rows could not be predicted") && !test::contains("left out"));
    const auto rows = json_of(ended);
    REQUIRE(rows.size() == 6);
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i]["sample"] == i);
    CHECK(rows[0]["name"] == "low");
    CHECK(!rows[0].contains("label"));
    CHECK(rows[1]["name"] == "low");
    CHECK(!rows[1].contains("label"));
    CHECK(rows[2] == nlohmann::json{{"sample", 2}, {"error", "line 4: column 'x': 'much' is no number"}});
    CHECK(rows[3]["name"] == "high");
    CHECK(rows[3]["label"] == 0);  // "high" is before "low"
    CHECK(rows[4]["label"] == 1);
    CHECK(rows[5]["error"] == "line 7: 1 field, but the first row has 3");
    const std::string text = run_command(with(command, {"--format", "csv"})).out;
    CHECK(text.starts_with(csv));
    CHECK_THAT(text, test::contains("2,,,,,line 4: column 'x': 'much' is no number\r\n") &&
                         test::contains(",high,yes,\r\n") && test::contains(",low,no,\r\n"));
    CHECK_THAT(run_command(command).out, test::contains("line 4: column 'x'") && test::contains("wrong"));
  }
  const auto some = json_of(run_command(
      with({"predict", weights, "--data", "csv:" + file, "--first", "2", "--count", "2", "--json"}, device)));
  REQUIRE(some.size() == 2);
  CHECK(some[0]["sample"] == 2);
  CHECK(some[0].contains("error"));
  CHECK(some[1]["sample"] == 3);
  CHECK(some[1]["name"] == "high");

  // Neither a column of labels nor a good row; two files.
  write_file(folder / "plain.tsv", "colour\tx\nred\t3\n");
  const std::string plain = (folder / "plain.tsv").string();
  const Ended one = run_command(with({"predict", weights, plain, "--format", "csv"}, device));
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("sample,predicted,probability\r\n0,low,"));
  write_file(folder / "bad.csv", "x,colour\n?!,red\n");
  const Ended bad = run_command(with({"predict", weights, (folder / "bad.csv").string(), "--format", "csv"}, device));
  CHECK(bad.code == 1);
  CHECK(bad.out == "sample,error\r\n0,line 2: column 'x': '?!' is no number\r\n");
  const auto both = json_of(run_command(with({"predict", weights, plain, file, "--json"}, device)));
  REQUIRE(both.size() == 7);
  CHECK(both[0]["sample"] == plain + ":0");
  CHECK(both[6]["sample"] == file + ":5");
  write_file(folder / "other.csv", "y,colour\n1,red\n");
  check_refusal(with({"predict", weights, (folder / "other.csv").string()}, device), 2, {"has no column 'x'"});
}

TEST_CASE("columns may have the names of the results' own", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string text = "x,sample,label\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{},{}\n", i, i / 2.0, i / 4.0);
  write_file(folder / "t.csv", text);
  const std::string data = "csv:" + (folder / "t.csv").string(), weights = (folder / "w.safetensors").string();
  const Arguments device{"--device", cheap_device()};
  REQUIRE(run_command(with({"train", "mlp:width=4", "--data", data + ",target=sample,label", "--quiet", "--lr", "0.001",
                            "--epochs", "2", "--out", weights},
                           device))
              .code == 0);
  const auto rows = json_of(run_command(with({"predict", weights, "--data", data, "--count", "2", "--json"}, device)));
  CHECK(rows[1]["sample"] == 1);
  CHECK(!rows[1].contains("label"));
  CHECK(rows[1]["predictions"].size() == 2);
  CHECK(rows[1]["predictions"]["sample"].is_number_float());
  const Ended csv = run_command(with({"predict", weights, "--data", data, "--count", "1", "--format", "csv"}, device));
  CHECK(csv.out.starts_with("sample,sample (predicted),label\r\n0,"));
  check_refusal(with({"predict", weights, "--data", data, "--top", "2"}, device), 2,
                {"--top names the likeliest classes", "predicts numbers"});
}

TEST_CASE("predict says what weights were trained on when it is given something else", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string table = train_on_table(folder), file = (folder / "t.csv").string();
  std::filesystem::create_directory(folder / "sounds");
  write_file(folder / "sounds/a.wav", wav(sine(400, 16000, 8000)));
  const std::string picture = (folder / "photo.jpg").string(), sounds = (folder / "sounds").string();
  write_file(folder / "photo.jpg", "no image");
  const std::string trained = "was trained on a table with the columns x, colour; ";
  check_refusal({"predict", table, picture}, 2, {trained, "photo.jpg is an image", "FILE.csv"});
  check_refusal({"predict", table, sounds}, 2, {trained, "is a folder of recordings"});
  check_refusal({"predict", table, "--data", "folder:" + sounds}, 2, {trained, "has images"});
  check_refusal({"evaluate", table, "folder:" + sounds}, 2, {trained, "--data csv:FILE"});
  check_refusal({"predict", table, file, "--image", "32"}, 2, {"--image", "was trained on a table"});
  check_refusal({"predict", table, file, "--sheet", (folder / "s.png").string()}, 2, {"--sheet shows pictures"});

  const Ended named =
      run_command({"predict", table, "csv:" + file, "--count", "3", "--json", "--device", cheap_device()});
  INFO(named.err);
  REQUIRE(named.code == 0);
  CHECK(nlohmann::json::parse(named.out).size() == 3);

  const std::string digits = write_digits(folder / "digits", 40, 20), net = (folder / "net.safetensors").string();
  REQUIRE(run_command(train(digits, {"--quiet", "--out", net})).code == 0);
  check_refusal({"predict", net, file}, 2, {"does not say what it was trained on", "t.csv is a table"});
  check_refusal({"predict", net, sounds}, 2, {"is a folder of recordings"});
}

TEST_CASE("predict refuses options that would be ignored", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string weights = train_on_table(folder), file = (folder / "t.csv").string();
  const std::string data = "csv:" + file;
  check_refusal({"predict", weights, file, "--count", "3"}, 2, {"--count is for samples of --data"});
  check_refusal({"predict", weights, file, "--first", "3"}, 2, {"--first is for samples of --data"});
  check_refusal({"predict", weights, file, "--split", "train"}, 2, {"--split is for samples of --data"});
  check_refusal({"predict", weights, file, "--out", (folder / "o.csv").string()}, 2, {"--out", ".safetensors"});
  check_refusal({"predict", weights, file, "--sheet", (folder / "s.jpg").string()}, 2, {"--sheet", ".png"});
  check_refusal({"predict", "lenet", weights, file}, 2, {"was trained as mlp:width=8, and is read as lenet"});
  check_refusal({"predict", weights, file, "--json", "--format", "table"}, 2, {"--json contradicts --format table"});
  check_refusal({"predict", weights, "--data", data, "--generate", "3"}, 2, {"--generate continues texts"});
}

TEST_CASE("random data has the classes and the shape that weights were trained with", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string weights = train_on_table(folder);
  const Arguments device{"--device", cheap_device()};
  const Ended evaluated = run_command(with({"evaluate", weights, "random", "--top", "2", "--json"}, device));
  INFO(evaluated.err);
  REQUIRE(evaluated.code == 0);
  CHECK(nlohmann::json::parse(evaluated.out)["top_k"] == 1.0);  // of two classes
  const Ended trained = run_command(
      with({"train", "mlp:width=8", "--data", "random", "--weights", weights, "--max-steps", "2", "--quiet"}, device));
  INFO(trained.err);
  CHECK(trained.code == 0);
  const Ended exported = run_command(with({"export", "mlp:width=8", "--weights", weights, "--out",
                                           (folder / "net.onnx").string(), "--verify", "concord", "--json"},
                                          device));
  INFO(exported.err);
  CHECK(exported.code == 0);
  const Ended run = run_command(with({"run", "mlp:width=8", "--weights", weights, "--input", "random:2x4"}, device));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_THAT(run.out, test::contains("[2, 2]"));
  const Ended converted =
      run_command({"convert", weights, (folder / "c.safetensors").string(), "--for", "mlp:width=8"});
  INFO(converted.err);
  CHECK(converted.code == 0);
  const Ended compared = run_command({"compare", "mlp:width=8", "--weights", weights, "--devices",
                                      cheap_device() + "," + cheap_device(), "--steps", "2", "--seconds", "0.01"});
  INFO(compared.err);
  CHECK(compared.code == 0);
}
