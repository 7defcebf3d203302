// Tables to predict from: every row of the file, and what the file says of labels.
#include "concord/data/table/csv_inputs.hpp"

#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

data::CsvEncoding encoding_of(std::vector<std::string> classes) {
  data::CsvEncoding encoding;
  encoding.inputs.push_back({.name = "x", .mean = 1, .deviation = 2});
  encoding.labels.push_back({"y", std::move(classes)});
  return encoding;
}

}  // namespace

TEST_CASE("a table to predict from has all rows of its file", "[csv]") {
  const TemporaryFolder folder;
  const auto file = folder / "t.csv";
  write_file(file, "y,x\na,5\n,3\n\nzebra,1\nb,old\n b ,7\nb\n");
  const data::CsvInputs inputs = data::csv_inputs(file, {}, encoding_of({"a", "b"}));
  REQUIRE(inputs.rows.size() == 6);
  const std::vector<std::int64_t> lines{2, 3, 5, 6, 7, 8};
  const std::vector<std::int32_t> labels{0, -1, -1, -1, 1, -1};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(inputs.rows[i].line == lines[i]);
    CHECK(inputs.rows[i].label == labels[i]);
    CHECK(inputs.rows[i].problem.empty() == (i != 3 && i != 5));
  }
  CHECK(inputs.rows[3].problem == "column 'x': 'old' is no number");
  REQUIRE(inputs.dataset.features.shape() == Shape{4, 1});
  CHECK(inputs.dataset.labels.elements() == 0);
  const auto features = inputs.dataset.features.values<float>();
  CHECK(std::vector(features.begin(), features.end()) == std::vector{2.0F, 1.0F, 0.0F, 3.0F});
}

TEST_CASE("a table to predict from needs no label, and no good row", "[csv]") {
  const TemporaryFolder folder;
  const auto file = folder / "t.csv";
  write_file(file, "x\nold\n" + std::string(5000, 'a') + "\n");
  const data::CsvInputs inputs = data::csv_inputs(file, {}, encoding_of({"a", "b"}));
  REQUIRE(inputs.rows.size() == 2);
  CHECK(inputs.dataset.features.elements() == 0);
  CHECK(inputs.rows[1].problem == "column 'x': '" + std::string(60, 'a') + "…' is no number");
  write_file(file, "x,y\n1,\xFF\n");  // what is not UTF-8 is no class
  CHECK(data::csv_inputs(file, {}, encoding_of({"a", "b"})).rows[0].label == -1);
  write_file(file, "x,town,y\n1,M\xFC,a\n2,Ulm,a\n");
  data::CsvEncoding towns = encoding_of({"a", "b"});
  towns.inputs.push_back({.name = "town", .is_category = true, .values = {"Ulm"}});
  const data::CsvInputs foreign = data::csv_inputs(file, {}, towns);
  REQUIRE(foreign.rows.size() == 2);
  CHECK(foreign.rows[0].problem == "column 'town': 'M\\xfc' is not in UTF-8 (save the file so)");
  CHECK(foreign.rows[1].problem.empty());
  write_file(file, "z\n1\n");
  CHECK_THROWS_AS(data::csv_inputs(file, {}, encoding_of({"a", "b"})), ArgumentError);
}

TEST_CASE("classes that are numbers are found however the file writes them", "[csv]") {
  const TemporaryFolder folder;
  const auto file = folder / "t.csv";
  write_file(file, "x;y\n1;0\n2;1,0\n3;2\n4;1e0\n");
  const data::CsvInputs inputs = data::csv_inputs(file, {}, encoding_of({"0", "1"}));
  REQUIRE(inputs.rows.size() == 4);
  CHECK(inputs.rows[0].label == 0);
  CHECK(inputs.rows[1].label == 1);
  CHECK(inputs.rows[2].label == -1);
  CHECK(inputs.rows[3].label == 1);
}
