// Tables as data sets: standardised numbers, one-hot categories, missing values, kinds of labels, and the encoding that
// a model keeps.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "concord/core/log.hpp"
#include "concord/data/selection.hpp"
#include "concord/data/table/csv.hpp"
#include "core/thrown.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::pair<Dataset, data::CsvEncoding> csv_set(std::string_view text, const data::CsvOptions& options,
                                              const data::CsvEncoding* fitted = nullptr) {
  const TemporaryFolder folder;
  write_file(folder / "t.csv", text);
  return data::csv(folder / "t.csv", options, fitted);
}

std::vector<float> csv_features_of(const Dataset& dataset, std::size_t row) {
  const auto width = static_cast<std::size_t>(dataset.features.shape()[1]);
  const auto values = dataset.features.values<float>().subspan(row * width, width);
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> csv_class_labels(const Dataset& dataset) {
  const auto values = dataset.labels.values<std::int32_t>();
  return {values.begin(), values.end()};
}

constexpr std::string_view kCsvPeople =
    "age,town,same,y\n"
    "20,Oslo,3,yes\n"
    "40,,3,no\n"
    ",Bergen,3,yes\n"
    "30,Oslo,3,maybe\n";

std::string csv_encode_error(std::string_view text, const data::CsvOptions& options,
                             const data::CsvEncoding* fitted = nullptr) {
  return thrown([&] { static_cast<void>(csv_set(text, options, fitted)); });
}

class CsvEncodeLog {
 public:
  CsvEncodeLog() {
    set_log([this](LogLevel, std::string_view message) { text += std::string(message) + "\n"; });
  }
  CsvEncodeLog(const CsvEncodeLog&) = delete;
  CsvEncodeLog& operator=(const CsvEncodeLog&) = delete;
  ~CsvEncodeLog() { set_log({}); }
  std::string text;
};

}  // namespace

TEST_CASE("numbers are standardised, categories one-hot, and what is missing has a feature of its own", "[data]") {
  const auto [dataset, encoding] = csv_set(kCsvPeople, {.labels = {"y"}});
  CHECK(encoding.feature_names() == std::vector<std::string>{"age", "age is missing", "town=Bergen", "town=Oslo",
                                                             "town=(other)", "town is missing", "same"});
  CHECK(dataset.name == "t.csv");
  CHECK(dataset.features.spec() == TensorSpec{DType::f32, Shape{4, 7}});
  const float deviation = std::sqrt(200.0F / 3);
  const std::vector<std::vector<float>> expected{{-10 / deviation, 0, 0, 1, 0, 0, 0},
                                                 {10 / deviation, 0, 0, 0, 0, 1, 0},
                                                 {0, 1, 1, 0, 0, 0, 0},
                                                 {0, 0, 0, 1, 0, 0, 0}};
  for (std::size_t row = 0; row < 4; ++row) {
    const std::vector<float> features = csv_features_of(dataset, row);
    for (std::size_t i = 0; i < 7; ++i) CHECK(features[i] == Approx(expected[row][i]).epsilon(1e-6));
  }
  CHECK(encoding.inputs[2].deviation == 1);
  CHECK(csv_class_labels(dataset) == std::vector<std::int32_t>{2, 1, 2, 0});
  CHECK(dataset.classes == 3);
  CHECK(dataset.class_names == std::vector<std::string>{"maybe", "no", "yes"});
  CHECK(dataset.label_name.empty());
}

TEST_CASE("a label is of classes if it is text or a few whole numbers, else a target", "[data]") {
  std::string text = "x,few,many,often,part\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("{},{},{},{},{}\n", i, 10 - i % 20, i, i % 30, 0.5 * (i % 3));
  const auto label = [&](const std::string& name) { return csv_set(text, {.labels = {name}}); };
  const auto [few, encoding] = label("few");
  CHECK(few.classes == 20);
  CHECK(few.class_names.front() == "-9");  // by value
  CHECK(few.class_names.back() == "10");
  CHECK(csv_class_labels(few)[0] == 19);
  CHECK(label("often").first.classes == 30);
  const CsvEncodeLog log;
  for (const std::string name : {"many", "part"}) {
    const Dataset dataset = label(name).first;
    CHECK(dataset.classes == 0);
    CHECK(dataset.labels.spec() == TensorSpec{DType::f32, Shape{300, 1}});
    CHECK_THAT(log.text, contains("the label '" + name + "' has numbers and no classes"));
  }
  CHECK_THAT(csv_encode_error(text, {}), contains("ArgumentError") && contains("label=NAME"));
  CHECK_THAT(csv_encode_error("x,y\n1,a\n", {.targets = {"y"}}), contains("line 2: column 'y': 'a' is no number"));
}

TEST_CASE("several labels are columns of their names, and targets are one", "[data]") {
  const auto [dataset, encoding] =
      csv_set("x,a,b,s,t\n1,u,5,0.5,2\n2,v,6,1.5,4\n", {.labels = {"b", "a"}, .targets = {"t", "s"}});
  CHECK(encoding.inputs.size() == 1);
  const std::vector<Column> labels = dataset.label_columns();
  REQUIRE(labels.size() == 3);
  CHECK(labels[0].name == "b");
  CHECK(labels[1].name == "a");
  CHECK(labels[1].classes == 2);
  CHECK(labels[2].name == "t");
  CHECK(labels[2].values.shape() == Shape{2, 2});
  CHECK(labels[2].values.values<float>()[0] == 2);
  CHECK(labels[2].values.values<float>()[1] == 0.5F);
  CHECK(dataset.class_names == std::vector<std::string>{"5", "6"});
}

TEST_CASE("a fitted encoding reads files of the same columns, in other orders and without labels", "[data]") {
  const data::CsvEncoding encoding = csv_set(kCsvPeople, {.labels = {"y"}}).second;
  const auto [again, same] = csv_set("extra;y;same;town;age\nq;no;3;Oslo;20\n", {}, &encoding);
  CHECK(same == encoding);
  CHECK(csv_features_of(again, 0) == csv_features_of(csv_set(kCsvPeople, {.labels = {"y"}}).first, 0));
  CHECK(csv_class_labels(again) == std::vector<std::int32_t>{1});

  const CsvEncodeLog log;
  const Dataset unlabelled = csv_set("age,town,same\n20,Paris,\n,Rome,3\n", {}, &encoding).first;
  CHECK(unlabelled.labels.elements() == 0);
  CHECK(csv_features_of(unlabelled, 0)[4] == 1);  // other
  CHECK(csv_features_of(unlabelled, 0)[6] == 0);  // the mean
  CHECK(csv_features_of(unlabelled, 1)[1] == 1);
  CHECK_THAT(log.text, contains("'town' has 2 values that training never saw") &&
                           contains("'same' lacks 1 value, none in training; it counts as the mean"));

  CHECK_THAT(csv_encode_error("age,same,y\n1,2,no\n", {}, &encoding),
             contains("ArgumentError") && contains("has no column 'town'"));
  CHECK_THAT(csv_encode_error("age,town,same,y\n1,Oslo,3,never\n", {}, &encoding),
             contains("t.csv, line 2: the label 'y' is 'never', none of the 3 classes"));
  CHECK_THAT(csv_encode_error("age,town,same\nold,Oslo,3\n", {}, &encoding), contains("line 2: column 'age': 'old'"));
  CHECK(csv_set("age,town,same\nold,Oslo,3\n1,Oslo,3\n", {.bad = data::BadRows::skip}, &encoding).first.size() == 1);

  data::CsvEncoding without_labels = encoding;  // a column of labels that is empty, as in files for competitions
  without_labels.labels.clear();
  CHECK(csv_set("age,town,same,y\n20,Oslo,3,\n", {}, &without_labels).first.labels.elements() == 0);

  // Classes that look like numbers in one file, and not in another.
  const data::CsvEncoding codes = csv_set("x,y\n1,01\n2,a\n3,b\n", {.labels = {"y"}}).second;
  CHECK(csv_class_labels(csv_set("x,y\n1,01\n", {}, &codes).first) == std::vector<std::int32_t>{0});
  const data::CsvEncoding digits = csv_set("x,y\n1,10\n2,9\n3,8\n", {.labels = {"y"}}).second;
  CHECK(csv_class_labels(csv_set("x,y\n1,9\n1,10.0\n", {}, &digits).first) == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("classes that were read as text stay text, whatever they look like", "[data]") {
  std::string text = "x,zip\n";
  for (int i = 0; i < 6; ++i)
    text += fmt::format("{},{}\n", i, std::array{"01", "1", "02"}.at(static_cast<std::size_t>(i % 3)));
  const data::CsvEncoding encoding = csv_set(text, {.labels = {"zip"}, .categories = {"zip"}}).second;
  CHECK(encoding.labels[0].classes == std::vector<std::string>{"01", "02", "1"});
  CHECK(encoding.labels[0].is_text);
  const data::CsvEncoding saved = data::csv_encoding_from_json(data::to_json(encoding));
  CHECK(saved == encoding);
  CHECK(csv_class_labels(csv_set(text, {}, &saved).first) == std::vector<std::int32_t>{0, 2, 1, 0, 2, 1});
  const data::CsvEncoding digits = csv_set(text, {.labels = {"zip"}}).second;
  CHECK_FALSE(digits.labels[0].is_text);

  // An earlier file does not say it: a name that no number has is text.
  std::string earlier = data::to_json(encoding);
  const std::string_view member = ",\"text\":true";
  REQUIRE(earlier.find(member) != std::string::npos);
  earlier.erase(earlier.find(member), member.size());
  CHECK(data::csv_encoding_from_json(earlier) == encoding);
}

TEST_CASE("a target that 32 bits cannot tell apart is a warning with the numbers", "[data]") {
  const auto warning_of = [](double offset) {
    std::string text = "x,y\n";
    for (int i = 0; i < 50; ++i) text += fmt::format("{},{}\n", i, offset + 2 * i);
    const CsvEncodeLog log;
    static_cast<void>(csv_set(text, {.targets = {"y"}}));
    return log.text;
  };
  CHECK_THAT(warning_of(1'700'000'000), contains("the target 'y' loses digits: its mean is 1.7e+09") &&
                                            contains("are 128 apart there. Subtract a number close to the mean"));
  CHECK_THAT(warning_of(1000), !contains("loses digits"));
}

TEST_CASE("an encoding is fitted to the rows for training alone", "[data]") {
  const TemporaryFolder folder;
  write_file(folder / "t.csv", "a,c,e,y\n1,u,,0\n3,v,,1\n100,w,7,2\n");
  const data::CsvOptions options{.labels = {"y"}};
  const data::CsvTable table = data::read_csv(folder / "t.csv", options);
  const CsvEncodeLog log;
  const data::CsvEncoding encoding = data::fit_csv(table, options, std::vector<std::int32_t>{0, 1});
  CHECK(encoding.inputs[0].mean == 2);
  CHECK(encoding.inputs[0].deviation == 1);
  CHECK(encoding.inputs[1].values == std::vector<std::string>{"u", "v"});
  CHECK_THAT(log.text, contains("the column 'e' has no values for training"));
  CHECK(encoding.labels[0].classes == std::vector<std::string>{"0", "1", "2"});
  const Dataset dataset = data::encode_csv(table, encoding);
  CHECK(csv_features_of(dataset, 2) == std::vector<float>{98, 0, 0, 1});
  CHECK_THAT(thrown([&] { static_cast<void>(data::fit_csv(table, options, std::vector<std::int32_t>{3})); }),
             contains("row 3 is outside its 3 rows"));
}

TEST_CASE("rows that are held out do not change the encoding", "[data]") {
  constexpr std::int64_t kRows = 30, kHeldOut = 10;
  const auto [train, held_out] = data::split_rows(kRows, kHeldOut, "t", 3);
  std::vector<bool> is_held_out(kRows);
  for (const std::int32_t row : held_out) is_held_out[static_cast<std::size_t>(row)] = true;
  std::string text = "x,town,y\n";
  for (std::size_t row = 0; row < kRows; ++row) {
    text += is_held_out[row] ? fmt::format("1e6,Rome,{}\n", row % 2) : fmt::format("{},Oslo,{}\n", row % 2, row % 2);
  }
  const TemporaryFolder folder;
  write_file(folder / "t.csv", text);
  const data::CsvSplit split = data::csv_split(folder / "t.csv", {.labels = {"y"}}, kHeldOut, 3);
  CHECK(split.train->size() == kRows - kHeldOut);
  CHECK(split.held_out->size() == kHeldOut);
  CHECK(split.encoding.inputs[0].mean <= 1);
  CHECK(split.encoding.inputs[0].deviation <= 1);
  CHECK(split.encoding.inputs[1].values == std::vector<std::string>{"Oslo"});
  const Dataset first = data::read_rows(*split.held_out, std::vector<std::int32_t>{0});
  CHECK(first.features.values<float>()[0] > 1e5F);
  CHECK(csv_features_of(first, 0)[2] == 1);  // a town that training never saw
  for (const std::int64_t wrong : {std::int64_t{0}, kRows}) {
    CHECK_THROWS_AS(data::csv_split(folder / "t.csv", {.labels = {"y"}}, wrong), ArgumentError);
  }
}

TEST_CASE("a column that is constant but for rounding is not blown up", "[data]") {
  std::string text = "x,y\n";
  for (int i = 0; i < 1000; ++i) text += fmt::format("0.1,{}\n", i % 2);
  const auto [dataset, encoding] = csv_set(text, {.labels = {"y"}});
  CHECK(encoding.inputs[0].deviation == 1);
  CHECK(std::abs(csv_features_of(dataset, 0)[0]) < 1e-10F);
}

TEST_CASE("an encoding becomes JSON and the same again, and other JSON is refused", "[data]") {
  const data::CsvEncoding encoding =
      csv_set("a,b,y,t\n0.1,ü\",x,1.5\n0.3,\"x,\ny\",z,2\n0.7,NA,x,3\n", {.labels = {"y"}, .targets = {"t"}}).second;
  const std::string text = data::to_json(encoding);
  CHECK(data::csv_encoding_from_json(text) == encoding);

  const auto error_with = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    const std::size_t at = other.find(from);
    REQUIRE(at != std::string::npos);
    other.replace(at, from.size(), to);
    return thrown([&] { static_cast<void>(data::csv_encoding_from_json(other, "w.safetensors: table")); });
  };
  CHECK_THAT(error_with("\"mean\"", "\"median\""), contains("w.safetensors: table: inputs 0: \"median\" is unknown"));
  CHECK_THAT(error_with("\"missing\":false,", ""), contains("inputs 0: has no \"missing\""));
  CHECK_THAT(error_with("\"version\":1", "\"version\":2"), contains("version 2"));
  CHECK_THAT(error_with("concord.table", "concord.chair"), contains("concord.chair"));
  CHECK_THAT(error_with("\"name\":\"b\"", "\"name\":\"a\""), contains("the name \"a\" occurs twice"));
  CHECK_THAT(error_with("\"kind\":\"target\"", "\"kind\":\"goal\""),
             contains("labels 1: the kind \"goal\" is unknown"));
  CHECK_THAT(error_with("\"deviation\":0", "\"deviation\":-0"), contains("is not positive"));
  CHECK_THAT(error_with("[\"x\",\"z\"]", "[\"x\",\"x\"]"), contains("\"classes\" has a text twice"));
  CHECK_THAT(error_with("{\"format\"", "{\"more\":1,\"format\""), contains("\"more\" is unknown"));
  CHECK_THAT(thrown([] { static_cast<void>(data::csv_encoding_from_json("{")); }), contains("is not JSON"));
}
