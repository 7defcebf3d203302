// concord data check and bench, and the usage of all three. Packing is in data_pack.cpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Three parts: cats and dogs, of which the validation part has a picture of the training part, and one file is broken.
std::string write_animals(const TemporaryFolder& folder) {
  for (int i = 0; i < 6; ++i) write_picture(folder, fmt::format("set/train/cat/{}.png", i), 20 + i, 30, 3, i);
  for (int i = 0; i < 2; ++i) write_picture(folder, fmt::format("set/train/dog/{}.jpg", i), 40, 30, 3, 100 + i);
  write_picture(folder, "set/train/dog/as a cat.png", 20, 30, 3, 0);  // train/cat/0.png
  write_picture(folder, "set/val/cat/copy.bmp.png", 21, 30, 3, 1);    // train/cat/1.png
  write_picture(folder, "set/val/dog/own.png", 22, 30, 3, 50);
  write_picture(folder, "set/test/dog/a & b.png", 23, 30, 1, 60);
  const std::string whole = content_of(folder / "set/train/cat/5.png");
  write_file(folder / "set/train/cat/5.png", whole.substr(0, whole.size() / 2));
  write_file(folder / "set/train/cat/<empty>.jpg", "");
  return (folder / "set").string();
}

Ended check_of(const std::string& spec, const Arguments& more = {}) {
  return run_command(with({"data", "check", spec, "--quiet"}, more));
}

nlohmann::json json_of_check(const std::string& spec, int code, const Arguments& more = {}) {
  const Ended ended = check_of(spec, with({"--json"}, more));
  INFO(ended.err);
  REQUIRE(ended.code == code);
  return nlohmann::json::parse(ended.out);
}

}  // namespace

TEST_CASE("data check counts, names bad files and finds what leaks", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string set = write_animals(folder), page = (folder / "page.html").string();
  const auto report = json_of_check("folder:" + set, 1, {"--html", page, "--loader-threads", "3"});
  CHECK(report["samples"] == 13);
  REQUIRE(report["parts"].size() == 3);
  CHECK(report["parts"][0]["name"] == "train");
  CHECK(report["parts"][0]["bad"] == 2);
  CHECK(report["parts"][0]["class_counts"] == nlohmann::json{7, 3});
  CHECK(report["parts"][1]["class_counts"] == nlohmann::json{1, 1});
  CHECK(report["parts"][2]["class_counts"] == nlohmann::json{0, 1});
  CHECK(report["classes"] == nlohmann::json{"cat", "dog"});
  CHECK(report["imbalance"].get<double>() == Approx(7.0 / 3));
  REQUIRE(report["bad"].size() == 2);
  CHECK(report["bad"][0]["name"] == set + "/train/cat/5.png");
  CHECK_FALSE(report["bad"][0]["reason"].get<std::string>().empty());
  CHECK(report["bad"][1]["reason"] == "the file is empty");

  CHECK(report["leaks"] == 1);
  REQUIRE(report["duplicates"].size() == 2);
  const auto& leak = report["duplicates"][0];
  CHECK(leak["across_parts"] == true);
  CHECK(leak["different_labels"] == false);
  CHECK(leak["equal_bytes"] == true);
  CHECK(leak["samples"][0]["name"] == set + "/train/cat/1.png");
  CHECK(leak["samples"][1]["part"] == "validation");
  const auto& contradiction = report["duplicates"][1];
  CHECK(contradiction["across_parts"] == false);
  CHECK(contradiction["different_labels"] == true);
  CHECK(contradiction["samples"][1]["label"] == "dog");

  const auto& images = report["images"];
  CHECK(images["formats"] == nlohmann::json{{"JPEG, colour", 2}, {"PNG, colour", 8}, {"PNG, grey", 1}});
  CHECK(images["smallest"]["width"] == 20);
  CHECK(images["largest"]["width"] == 40);
  CHECK(images["median"] == nlohmann::json{{"width", 22}, {"height", 30}});
  CHECK(images["mean"].size() == 3);
  std::int64_t in_bins = 0;
  for (const auto& bin : images["shorter_sides"]) in_bins += bin["images"].get<std::int64_t>();
  CHECK(in_bins == 11);
  const std::string normalisation = images["options"];
  CHECK_THAT(normalisation, Catch::Matchers::StartsWith("--mean 0.") && test::contains(" --deviation 0."));

  const std::string html = content_of(page);
  CHECK_THAT(html, test::contains("data:image/png;base64,iVBOR") && test::contains(normalisation));
  CHECK_THAT(html, test::contains("&lt;empty&gt;.jpg") && test::contains("--class-weights balanced"));
  CHECK_THAT(html, test::contains("Leakage:") && test::contains("2 samples are bad"));
  CHECK_THAT(html, !test::contains("<empty>") && !test::contains("http") && !test::contains("<script"));

  const Ended text = check_of("folder:" + set);
  CHECK(text.code == 1);
  CHECK_THAT(text.out, test::contains("folder:" + set + ": 13 samples, 2 classes, 2 of them bad"));
  CHECK_THAT(text.out, test::contains("LEAKAGE: 1 sample of one part is also in another") &&
                           test::contains("1 sample is more than once in a part") &&
                           test::contains("different labels") && test::contains(normalisation));
  CHECK(text.out.find("LEAKAGE") < text.out.find("part "));
  CHECK_THAT(text.out, test::contains("--class-weights balanced") && test::contains("5.png: "));
  CHECK_THAT(text.err, test::contains("2 of 13 samples are bad"));

  std::filesystem::remove(folder / "set/train/cat/5.png");
  std::filesystem::remove(folder / "set/train/cat/<empty>.jpg");
  CHECK(check_of("folder:" + set).code == 0);
}

TEST_CASE("data check says the mean and the deviation of the pixels", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  data::Image image;
  image.resize(1, 2, 3);
  image.pixels = {0, 51, 255, 102, 51, 255};
  std::filesystem::create_directories(folder / "set" / "one");
  write_file(folder / "set" / "one" / "a.png", data::encode_png(image));
  const auto report = json_of_check("folder:" + (folder / "set").string(), 0);
  CHECK(report["images"]["options"] == "--mean 0.2000,0.2000,1.0000 --deviation 0.2000,0.0000,0.0000");
  CHECK(report["warnings"].size() == 1);  // of one class
}

TEST_CASE("data check reads sets of idx files, with pictures of every class", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string page = (folder / "page.html").string();
  const auto report = json_of_check(write_digits(folder / "data", 150, 20), 0, {"--html", page});
  CHECK(report["classes"].size() == 10);
  CHECK(report["imbalance"] == 1.0);
  CHECK(report["leaks"] == 20);  // bars of one length
  CHECK(report["duplicates"].size() == 20);
  CHECK(report["images"]["formats"] == nlohmann::json{{"raw pixels, grey", 170}});
  CHECK(report["images"]["mean"].size() == 1);
  const std::string html = content_of(page);
  std::size_t pictures = 0;
  for (std::size_t at = 0; (at = html.find("<img", at)) != std::string::npos; ++at) ++pictures;
  CHECK(pictures == 120);
  CHECK_THAT(html, !test::contains("--class-weights"));
}

TEST_CASE("data check describes the columns of a table", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string csv = (folder / "t.csv").string();
  write_file(csv, "age,town,y\n1,Oslo,a\n3,,b\n,Rome,b\n5,Oslo\n3,,b\n");
  write_file(folder / "test.csv", "age,town,y\n1,Oslo,a\n");
  const std::string spec = "csv:" + csv + ",label=y,test=" + (folder / "test.csv").string();
  const auto report = json_of_check(spec, 1);
  CHECK(report["samples"] == 6);
  CHECK(report["parts"][0]["bad"] == 1);
  CHECK_THAT(report["bad"][0]["reason"].get<std::string>(), test::contains("line 5"));
  CHECK(report["classes"] == nlohmann::json{"a", "b"});
  CHECK(report["parts"][0]["class_counts"] == nlohmann::json{1, 3});
  const auto& age = report["columns"][0];
  CHECK(age["type"] == "number");
  CHECK(age["missing"] == 1);
  CHECK(age["mean"].get<double>() == Approx(7.0 / 3));
  CHECK(age["least"] == 1.0);
  CHECK(age["largest"] == 3.0);
  CHECK(report["columns"][1]["type"] == "text, 2 different");
  CHECK(report["columns"][1]["missing"] == 2);
  CHECK(report["columns"][2]["role"] == "label");
  CHECK(report["leaks"] == 1);
  CHECK(report["duplicates"].size() == 2);
  const Ended text = check_of(spec, {"--html", (folder / "page.html").string()});
  CHECK_THAT(text.out, test::contains("age") && test::contains("text, 2 different"));
  CHECK_THAT(content_of(folder / "page.html"), test::contains("<h2>Columns</h2>"));
}

TEST_CASE("data check reads arrays and texts", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", "<f4", "(3, 2)", std::vector<float>{1, 2, 3, NAN, 1, 2});
  write_npy(folder / "y.npy", "<i4", "(3,)", std::vector<std::int32_t>{0, 1, 1});
  const auto report =
      json_of_check(fmt::format("npy:{},{}", (folder / "x.npy").string(), (folder / "y.npy").string()), 1);
  CHECK(report["parts"][0]["bad"] == 1);
  CHECK(report["parts"][0]["class_counts"] == nlohmann::json{1, 2});
  CHECK_THAT(report["bad"][0]["reason"].get<std::string>(), test::contains("1 value is NaN"));
  CHECK(report["columns"][0]["missing"] == 1);
  CHECK(report["columns"][0]["mean"].get<double>() == Approx(9.0 / 5));
  CHECK(report["duplicates"][0]["different_labels"] == true);

  std::string letters;
  for (int i = 0; i < 3000; ++i) letters += static_cast<char>('a' + (i * i + i / 7) % 23);
  write_file(folder / "t.txt", letters);
  const auto words = json_of_check("text:" + (folder / "t.txt").string(), 0);
  CHECK(words["parts"].size() == 2);
}

TEST_CASE("data bench measures every stage and says what limits", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string set = write_animals(folder);
  const Arguments bench{
      "data", "bench",     "folder:" + set, "--image",          "16", "--augment", "rrc,flip", "--batch",
      "4",    "--seconds", "0.02",          "--loader-threads", "3"};
  const Ended json = run_command(with(bench, {"--json"}));
  INFO(json.err);
  REQUIRE(json.code == 0);
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report["sample_shape"] == "[3, 16, 16]");
  CHECK(report["batch"] == 4);
  CHECK_FALSE(report["limit"].get<std::string>().empty());
  std::vector<std::pair<std::string, int>> stages;
  for (const auto& stage : report["stages"]) {
    stages.emplace_back(stage["stage"], stage["threads"]);
    CHECK(stage["samples"] > 0);
    CHECK(stage["samples_per_second"] > 0);
  }
  const std::vector<std::pair<std::string, int>> expected{{"read", 1},   {"read", 3},   {"decode", 1}, {"sample", 1},
                                                          {"loader", 1}, {"loader", 2}, {"loader", 3}};
  CHECK(stages == expected);
  CHECK(report["stages"][6]["bad"] == 2);
  const Ended text = run_command(bench);
  CHECK(text.code == 0);
  CHECK_THAT(text.out, test::contains("decoding whole images") && test::contains("loader, batches") &&
                           test::contains("One core makes"));
  const Ended digits = run_command(
      {"data", "bench", write_digits(folder / "data", 20, 10), "--seconds", "0.01", "--loader-threads", "1", "--json"});
  CHECK(nlohmann::json::parse(digits.out)["sample_shape"] == "[1, 28, 28]");
}

TEST_CASE("wrong usage of concord data is refused in words", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 10, 10), out = (folder / "x-%06d.tar").string();
  write_file(folder / "t.csv", "a,y\n1,u\n2,v\n");
  const std::string csv = "csv:" + (folder / "t.csv").string() + ",label=y";
  check_refusal({"data"}, 2, {"subcommand is required"});
  check_refusal({"data", "chekc"}, 2, {"has no subcommand 'chekc'; did you mean check?"});
  check_refusal({"data", "check"}, 2, {"spec is required"});
  check_refusal({"data", "check", "mnits"}, 2, {"unknown data set 'mnits'"});
  check_refusal({"data", "check", data, "--jsn"}, 2, {"--jsn"});
  check_refusal({"data", "check", "random"}, 2, {"random data is made, not stored"});
  check_refusal({"data", "check", data, "--html", "/nonexistent/a.html"}, 1, {"there is no folder"});
  check_refusal({"data", "check", "folder:/nonexistent"}, 1, {"/nonexistent"});
  check_refusal({"data", "check", data, "--loader-threads", "0"}, 2, {"--loader-threads"});
  check_refusal({"data", "pack", data}, 2, {"out is required"});
  check_refusal({"data", "pack", data, "place"}, 2, {"\"place\" does not say what to write", "x-%06d.tar"});
  check_refusal({"data", "pack", data, "x-%6d.tar"}, 2, {"the number of a shard is written as %d"});
  check_refusal({"data", "pack", csv, out}, 2, {"images can be packed"});
  check_refusal({"data", "pack", data, out, "--part", "validation"}, 2, {"has no validation part"});
  check_refusal({"data", "pack", data, out, "--png", "--raw"}, 2, {"--png"});
  check_refusal({"data", "pack", data, out, "--quality", "0"}, 2, {"--quality"});
  check_refusal({"data", "pack", data, out, "--side", "0"}, 2, {"--side"});
  check_refusal({"data", "pack", data, out, "--bad", "maybe"}, 2, {"--bad"});
  check_refusal({"data", "pack", data, out, "--shard-size", "much"}, 2, {"much"});
  check_refusal({"data", "pack", data, out, "--shard-size", "1MiB", "--shard-samples", "3"}, 2, {"--shard-s"});
  check_refusal({"data", "pack", data, "x.lmdb", "--shard-samples", "3"}, 2, {"--shard-samples are for shards"});
  check_refusal({"data", "pack", data, (folder / "x.tar").string(), "--shard-samples", "3"}, 2, {"is one shard"});
  check_refusal({"data", "pack", data, "/nonexistent/x-%d.tar"}, 1, {"there is no folder /nonexistent"});
  check_refusal({"data", "bench", csv, "--image", "8"}, 2, {"--image and --augment are for images"});
  check_refusal({"data", "bench", data, "--augment", "flop"}, 2, {"there is no \"flop\""});
  check_refusal({"data", "bench", data, "--seconds", "0"}, 2, {"--seconds"});
}
