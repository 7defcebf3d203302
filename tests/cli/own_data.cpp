// Data of users' own through the command: pictures in folders, LMDB and shards, and tables; what is saved with the
// weights, and what predict makes of it.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/concord.hpp"
#include "concord/data/records/datum.hpp"
#include "concord/data/records/write_lmdb.hpp"
#include "concord/data/records/write_tar.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const std::vector<std::string> kKinds{"bottom", "left", "top"};

/// A grey picture of 28x28 with noise, bright in one half.
std::string own_picture(std::size_t kind, int number) {
  std::string pixels(28 * 28, '\0');
  std::uint32_t state = static_cast<std::uint32_t>(number) * 2654435761U + static_cast<std::uint32_t>(kind) + 1;
  for (std::size_t y = 0; y < 28; ++y) {
    for (std::size_t x = 0; x < 28; ++x) {
      state = state * 1664525U + 1013904223U;
      const bool bright = kind == 0 ? y >= 14 : kind == 1 ? x < 14 : y < 14;
      pixels[y * 28 + x] = static_cast<char>((state >> 24) % 60 + (bright ? 150 : 20));
    }
  }
  return "P5\n28 28\n255\n" + pixels;
}

/// folder/KIND/NN.pgm of `each` pictures a kind.
void write_pictures(const std::filesystem::path& folder, int first, int each) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    std::filesystem::create_directories(folder / kKinds[kind]);
    for (int i = first; i < first + each; ++i) {
      write_file(folder / kKinds[kind] / fmt::format("{:03}.pgm", i), own_picture(kind, i));
    }
  }
}

Arguments train_lenet(const std::string& data, const Arguments& more) {
  return with({"train", "lenet", "--data", data, "--device", cheap_device(), "--batch", "8", "--lr", "0.05", "--quiet"},
              more);
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::ifstream lines(file);
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

std::string weights_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a folder of pictures is trained on, and the weights name new pictures", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data/train", 0, 40);
  write_pictures(folder / "data/val", 100, 5);
  write_pictures(folder / "data/test", 200, 10);
  const std::string data = "folder:" + (folder / "data").string(), weights = (folder / "w.safetensors").string();
  const Ended trained = run_command(train_lenet(data, {"--epochs", "4", "--out", weights, "--json"}));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto report = nlohmann::json::parse(trained.out);
  CHECK(report["validation"]["samples"] == 15);
  CHECK(report["test"]["samples"] == 30);
  CHECK(report["test"]["accuracy"] == 1.0);

  // The weights say how a picture is prepared and what the classes are called.
  write_file(folder / "new.pgm", own_picture(2, 999));
  write_file(folder / "broken.jpg", "\xff\xd8\xff no picture");
  const std::string picture = (folder / "new.pgm").string(), broken = (folder / "broken.jpg").string();
  const Arguments device{"--device", cheap_device()};
  const Ended named = run_command(with({"predict", weights, picture, "--json", "--top", "2"}, device));
  INFO(named.err);
  REQUIRE(named.code == 0);
  const auto predicted = nlohmann::json::parse(named.out);
  REQUIRE(predicted.size() == 1);
  CHECK(predicted[0]["sample"] == picture);
  CHECK(predicted[0]["name"] == "top");
  CHECK(predicted[0]["classes"].size() == 2);
  CHECK(predicted[0]["probability"] > 0.5);
  const Ended csv =
      run_command(with({"predict", weights, (folder / "data/test/left").string(), "--format", "csv"}, device));
  REQUIRE(csv.code == 0);
  CHECK(std::ranges::count(csv.out, '\n') == 11);
  CHECK_THAT(csv.out, test::contains("sample,predicted,probability\r\n") && test::contains("200.pgm,left,"));
  const Ended failed = run_command(with({"predict", weights, broken, picture}, device));
  CHECK(failed.code == 1);
  CHECK_THAT(failed.out, test::contains(broken) && test::contains("top"));
  CHECK_THAT(failed.err, test::contains("1 of 2 files could not be predicted"));

  const Ended evaluated =
      run_command(with({"evaluate", "lenet", "--weights", weights, "--data", data, "--split", "validation"}, device));
  INFO(evaluated.err);
  CHECK_THAT(evaluated.out, test::contains("15 samples") && test::contains("accuracy 100.00 %"));
  std::filesystem::rename(folder / "data/val/top", folder / "data/val/upper");
  check_refusal(with({"evaluate", "lenet", "--weights", weights, "--data", data, "--split", "validation"}, device), 2,
                {"upper", "not one of the classes"});
}

TEST_CASE("the bytes of a training do not depend on threads or a stop in an epoch", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data", 0, 16);
  const std::string data = "folder:" + (folder / "data").string();
  const auto weights_after = [&](const std::string& name, const Arguments& more) {
    const std::string weights = (folder / name).string();
    const Ended ended = run_command(train_lenet(data, with({"--epochs", "2", "--augment", "flip,rotate=10,erase,crop=2",
                                                            "--validate", "none", "--out", weights},
                                                           more)));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return weights_in(weights);
  };
  const std::string expected = weights_after("1", {"--loader-threads", "1"});
  CHECK(weights_after("2", {"--loader-threads", "2"}) == expected);
  CHECK(weights_after("16", {"--loader-threads", "16"}) == expected);
  CHECK(weights_after("other", {"--seed", "2"}) != expected);
  const std::string checkpoint = (folder / "run").string();
  static_cast<void>(weights_after("stopped", {"--max-steps", "8", "--checkpoint", checkpoint}));
  CHECK(weights_after("resumed", {"--resume", checkpoint, "--loader-threads", "4"}) == expected);
}

TEST_CASE("the same pictures from a folder, LMDB and shards give the same losses", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data", 0, 16);
  {
    data::LmdbWriter database(folder / "pictures.lmdb");
    data::TarWriter first(folder / "part-0.tar"), second(folder / "part-1.tar");
    int number = 0;
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {  // the order of the folder
      for (int i = 0; i < 16; ++i, ++number) {
        const std::string picture = own_picture(kind, i), label = fmt::format("{}", kind);
        const std::string key = fmt::format("{:08}", number);
        const auto bytes = std::as_bytes(std::span(picture));
        const std::string datum = data::datum_of(bytes, static_cast<std::int32_t>(kind));
        database.add(key, std::as_bytes(std::span(datum)));
        data::TarWriter& shard = number < 20 ? first : second;
        shard.add(key, "pgm", bytes);
        shard.add(key, "cls", std::as_bytes(std::span(label)));
      }
    }
    database.finish();
    first.finish();
    second.finish();
  }
  const auto losses = [&](const std::string& data) {
    const std::string log = (folder / "log").string();
    std::filesystem::remove(log);
    const Ended ended = run_command(train_lenet(data, {"--epochs", "2", "--log", log}));
    INFO(data << ": " << ended.err);
    REQUIRE(ended.code == 0);
    std::vector<double> all;
    for (const auto& line : lines_of(log)) {
      if (line["event"] == "epoch") all.insert(all.end(), {line["loss"], line["validation"]["loss"]});
    }
    return all;
  };
  const std::vector<double> expected = losses("folder:" + (folder / "data").string());
  REQUIRE(expected.size() == 4);
  CHECK(losses("lmdb:" + (folder / "pictures.lmdb").string()) == expected);
  CHECK(losses("tar:" + (folder / "part-{0..1}.tar").string()) == expected);
}

TEST_CASE("a damaged picture does not end a training unless asked", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data", 0, 8);
  write_file(folder / "data/left/003.pgm", "P5\n28 28\n255\nshort");
  const std::string data = "folder:" + (folder / "data").string();
  const Arguments once{"--epochs", "1", "--validate", "none"};
  const Ended skipped = run_command(train_lenet(data, once));
  CHECK(skipped.code == 0);
  CHECK_THAT(skipped.err, test::contains("left/003.pgm") && test::contains("another sample takes its place"));
  const Ended failed = run_command(train_lenet(data, with(once, {"--bad", "fail"})));
  CHECK(failed.code == 1);
  CHECK_THAT(failed.err, test::contains("left/003.pgm"));
}

TEST_CASE("a damaged picture of a validation or test counts in nothing", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data", 0, 8);
  write_pictures(folder / "held", 8, 3);
  write_file(folder / "held/left/009.pgm", "P5\n28 28\n255\nshort");
  const std::string train = "folder:" + (folder / "data").string(), held = (folder / "held").string();
  const std::string weights = (folder / "w.safetensors").string();
  const Ended skipped =
      run_command(train_lenet(train + ",val=" + held + ",test=" + held, {"--epochs", "2", "--json", "--out", weights}));
  INFO(skipped.err);
  REQUIRE(skipped.code == 0);
  const auto report = nlohmann::json::parse(skipped.out);
  CHECK(report["validation"]["samples"] == 8);
  CHECK(report["test"]["samples"] == 8);
  CHECK_THAT(skipped.err, test::contains("left/009.pgm") && test::contains("it is left out"));
  for (const char* const part : {",val=", ",test="}) {
    const Ended failed = run_command(train_lenet(train + part + held, {"--epochs", "1", "--bad", "fail"}));
    CHECK(failed.code == 1);
    CHECK_THAT(failed.err, test::contains("left/009.pgm"));
  }
  const Ended evaluated = run_command(
      {"evaluate", weights, "folder:" + held, "--split", "train", "--confusion", "--json", "--device", cheap_device()});
  INFO(evaluated.err);
  REQUIRE(evaluated.code == 0);
  const auto metrics = nlohmann::json::parse(evaluated.out);
  CHECK(metrics["samples"] == 8);
  int all = 0;
  for (const int count : metrics["confusion"]) all += count;
  CHECK(all == 8);
}

TEST_CASE("a table is trained on, and its encoding is kept with the weights", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string rows = "length;colour;kind\n", unknown = "colour;length\n";
  for (int i = 0; i < 120; ++i) {
    rows += fmt::format("{},{};{};{}\n", i % 3 * 10 + i % 7, i % 10, i % 2 == 0 ? "red" : "blue",
                        std::array{"ant", "bee", "cat"}.at(static_cast<std::size_t>(i % 3)));
  }
  for (const int length : {1, 13, 25}) unknown += fmt::format("red;{},5\n", length);
  write_file(folder / "rows.csv", rows);
  write_file(folder / "new.csv", unknown);
  const std::string weights = (folder / "w.safetensors").string(), table = "csv:" + (folder / "rows.csv").string();
  const Arguments device{"--device", cheap_device()};
  const Ended trained = run_command(with({"train", "mlp:width=16", "--data", table + ",label=kind", "--epochs", "30",
                                          "--lr", "0.1", "--batch", "20", "--quiet", "--out", weights},
                                         device));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const Ended predicted =
      run_command(with({"predict", weights, "--data", "csv:" + (folder / "new.csv").string(), "--json"}, device));
  INFO(predicted.err);
  REQUIRE(predicted.code == 0);
  const auto classes = nlohmann::json::parse(predicted.out);
  REQUIRE(classes.size() == 3);
  CHECK(classes[0]["name"] == "ant");
  CHECK(classes[1]["name"] == "bee");
  CHECK(classes[2]["name"] == "cat");
  const Ended evaluated =
      run_command(with({"evaluate", "mlp:width=16", "--weights", weights, "--data", table}, device));
  INFO(evaluated.err);
  CHECK_THAT(evaluated.out, test::contains("120 samples") && test::contains("accuracy 100.00 %"));
  check_refusal(with({"train", "mlp", "--data", table}, device), 2, {"which column is to be predicted"});

  // A column of numbers as the target.
  const Ended regression = run_command(with(
      {"train", "mlp:width=16", "--data", table + ",target=length,drop=kind", "--epochs", "1", "--quiet", "--json"},
      device));
  INFO(regression.err);
  REQUIRE(regression.code == 0);
  CHECK_FALSE(nlohmann::json::parse(regression.out)["validation"].contains("accuracy"));
}

TEST_CASE("networks are cross-validated on one upload of the data", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 90, 10);
  const Ended ended = run_command({"crossval", "mlp:width=8+mlp:width=16", "--data", data, "--folds", "3", "--epochs",
                                   "2", "--batch", "10", "--device", cheap_device(), "--quiet", "--json", "--logs",
                                   (folder / "logs").string(), "--out", (folder / "weights").string()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report["uploaded_bytes"] == 90 * (28 * 28 + 4));
  REQUIRE(report["networks"].size() == 2);
  const auto& accuracy = report["networks"][1]["accuracy"];
  REQUIRE(accuracy["folds"].size() == 3);
  double mean = 0;
  for (const double fold : accuracy["folds"]) mean += fold / 3;
  CHECK(accuracy["mean"].get<double>() == Approx(mean));
  CHECK(lines_of(folder / "logs/mlp-width=16-fold3.jsonl").size() >= 2);
  CHECK(std::filesystem::exists(folder / "weights/mlp-width=8-fold1.safetensors"));
}

TEST_CASE("a data set that is misspelt is refused with what there is", "[cli][own_data]") {
  if (!command_is_there()) return;
  const Arguments train{"train", "lenet", "--device", cheap_device(), "--data"};
  check_refusal(with(train, {"foldr:/tmp"}), 2, {"unknown data set 'foldr'; did you mean folder?", "folder:DIR"});
  check_refusal(with(train, {"fashion-mnst"}), 2, {"did you mean fashion-mnist?"});
  check_refusal(with(train, {"folder:"}), 2, {"folder: needs the name"});
  check_refusal(with(train, {"folder:/tmp,lst=x"}), 2, {"no option 'lst'", "list"});
  check_refusal(with(train, {"folder:/there/is/none"}), 1, {"/there/is/none"});

  check_refusal(with(train, {"fashion-mnist", "--augment", "turn=3"}), 2, {"turn", "rotate"});
  check_refusal(with(train, {"fashion-mnist", "--image", "32"}), 2, {"--image"});
  check_refusal({"predict", "lenet", "a.png"}, 2, {"needs weights"});
}

TEST_CASE("a training goes on with the kind of validation that it began with", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data/train", 0, 16);
  write_pictures(folder / "data/val", 100, 2);
  const std::string both = "folder:" + (folder / "data").string();
  const std::string alone = "folder:" + (folder / "data/train").string();
  const std::string checkpoint = (folder / "run").string();
  const auto validation = [&] { return weights::File(checkpoint).metadata().at("concord.validation"); };
  REQUIRE(run_command(train_lenet(both, {"--checkpoint", checkpoint})).code == 0);
  CHECK_THAT(validation(), test::contains("part "));
  const Arguments on{"--resume", checkpoint, "--epochs", "2"};
  check_refusal(train_lenet(alone, on), 2, {"has no validation part, but the training that goes on had one"});
  CHECK(run_command(train_lenet(alone, with(on, {"--validate", "none"}))).code == 0);
  const Ended same = run_command(train_lenet(both, with(on, {"--json"})));
  INFO(same.err);
  REQUIRE(same.code == 0);
  CHECK(nlohmann::json::parse(same.out)["validation"]["samples"] == 6);

  REQUIRE(run_command(train_lenet(alone, {"--checkpoint", checkpoint})).code == 0);
  CHECK_THAT(validation(), test::contains("held-out 0.1 "));
  const Ended held_out = run_command(train_lenet(both, with(on, {"--json"})));
  INFO(held_out.err);
  REQUIRE(held_out.code == 0);
  CHECK(nlohmann::json::parse(held_out.out)["validation"]["samples"] == 5);  // of the training samples, as before
}

TEST_CASE("pictures of a size that a network does not take are one clear error", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pictures(folder / "data", 0, 4);
  const std::string data = "folder:" + (folder / "data").string();
  check_refusal(train_lenet(data, {"--image", "40"}), 2,
                {"lenet is made for samples of shape [1, 28, 28]", "has [1, 40, 40]", "without --image"});
  CHECK(run_command(train_lenet(data, {"--image", "28", "--epochs", "1"})).code == 0);
}
