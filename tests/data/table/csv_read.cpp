// Tables as files have them: separators, quotes, line ends, headers, kinds of columns, missing values and bad rows.
#include <fmt/format.h>

#include <charconv>

#include "concord/core/log.hpp"
#include "concord/data/table/csv.hpp"
#include "core/thrown.hpp"
#include "files.hpp"
#include "locale.hpp"

using namespace concord;
using namespace concord::test;

namespace {

data::CsvTable csv_table_of(std::string_view text, const data::CsvOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "t.csv", text);
  return data::read_csv(folder / "t.csv", options);
}

std::string csv_error(std::string_view text, const data::CsvOptions& options = {}) {
  return thrown([&] { static_cast<void>(csv_table_of(text, options)); });
}

std::vector<std::string> csv_names_of(const data::CsvTable& table) {
  std::vector<std::string> names;
  for (const data::CsvColumn& column : table.columns) names.push_back(column.name);
  return names;
}

/// Every field as text; "-" where it is missing.
std::vector<std::string> csv_fields_of(const data::CsvColumn& column) {
  std::vector<std::string> fields;
  for (const std::int32_t index : column.indices) {
    fields.push_back(index < 0 ? "-" : column.values[static_cast<std::size_t>(index)]);
  }
  for (const double number : column.numbers) fields.push_back(number == number ? fmt::format("{}", number) : "-");
  return fields;
}

using CsvFields = std::vector<std::string>;

/// Collects warnings as long as it lives.
class CsvWarnings {
 public:
  CsvWarnings() {
    set_log([this](LogLevel, std::string_view message) { text += std::string(message) + "\n"; }, LogLevel::warning);
  }
  CsvWarnings(const CsvWarnings&) = delete;
  CsvWarnings& operator=(const CsvWarnings&) = delete;
  ~CsvWarnings() { set_log({}); }
  std::string text;
};

}  // namespace

TEST_CASE("the separator of a table is found, or given", "[data]") {
  for (const char separator : {',', ';', '\t', '|'}) {
    std::string text = "age,town,height\n30,Oslo,1\n31,Bergen,2\n";
    std::ranges::replace(text, ',', separator);
    const data::CsvTable table = csv_table_of(text);
    CHECK(table.separator == separator);
    CHECK(table.has_header);
    CHECK(table.rows == 2);
    CHECK(csv_names_of(table) == CsvFields{"age", "town", "height"});
    CHECK(csv_fields_of(table.columns[1]) == CsvFields{"Oslo", "Bergen"});
    CHECK(table.columns[2].numbers == std::vector<double>{1, 2});
    CHECK(table.lines == std::vector<std::int64_t>{2, 3});
  }
  CHECK(csv_table_of("1,a;b\n2,c;d\n").separator == ',');
  CHECK(csv_table_of("1,5;2,5\n3,5;4,5\n").separator == ';');
  CHECK(csv_table_of("a;b,c\n\"1;2\",3\n", {.separator = ','}).columns.size() == 2);
  CHECK(csv_table_of("sep=;\na;b,c\n1;2\n").columns[1].name == "b,c");
  CHECK(csv_table_of("sep=;\r\na;b,c\r\n1;2\r\n").lines[0] == 3);
  CHECK(csv_table_of("x\n1\n2\n").columns.size() == 1);
  CHECK_THAT(csv_error("a b\n1 2\n", {.separator = ' '}), contains("ArgumentError") && contains("the separator"));
}

TEST_CASE("quotes, line ends, spaces, blank lines and a byte order mark are read", "[data]") {
  const data::CsvTable table = csv_table_of(
      "\xef\xbb\xbf\"name\",\"a, \"\"b\"\"\"\r\n"
      "\"x, y\",\"1\"\r\n"
      "\r\n"
      "  \n"
      "\"two\nlines\", 2 \r"
      "5\" disk ,3\n"
      "\"\"\"\",4");
  CHECK(csv_names_of(table) == CsvFields{"name", "a, \"b\""});
  CHECK(csv_fields_of(table.columns[0]) == CsvFields{"x, y", "two\nlines", "5\" disk", "\""});
  CHECK(table.columns[1].numbers == std::vector<double>{1, 2, 3, 4});
  CHECK(table.lines == std::vector<std::int64_t>{2, 5, 7, 8});
  CHECK_THAT(csv_error("a,b\n1,\"2\n3,4\n"), contains("t.csv, line 2: the quote that opens here is not closed"));
  CHECK_THAT(csv_error("a,b\n1,\"2\"x\n"), contains("t.csv, line 2: text behind the closing quote of field 2"));
  CHECK(csv_fields_of(csv_table_of("a\tb\n\tx\n1\t\n").columns[0]) == CsvFields{"-", "1"});
}

TEST_CASE("the first row is a header if nothing in it is a number, or if it has a name that is asked for", "[data]") {
  CHECK_FALSE(csv_table_of("1,2\n3,4\n").has_header);
  CHECK(csv_names_of(csv_table_of("1,2\n3,4\n")) == CsvFields{"0", "1"});
  CHECK_FALSE(csv_table_of("a,2\nb,4\n").has_header);
  CHECK_FALSE(csv_table_of("a,NA\nb,4\n").has_header);
  CHECK(csv_table_of("a,b\nc,d\n").has_header);
  CHECK_FALSE(csv_table_of("a,b\nc,d\n", {.header = false}).has_header);
  const data::CsvTable years = csv_table_of("y,2019,2020\n1,2,3\n", {.labels = {"y"}});
  CHECK(csv_names_of(years) == CsvFields{"y", "2019", "2020"});
  CHECK(csv_table_of("1,2\n0,4\n", {.labels = {"1"}}).rows == 2);  // a position, and no name
  CHECK(csv_table_of("5,6\n1,2\n", {.header = true}).columns[0].name == "5");
  CHECK(csv_names_of(csv_table_of("a,\n1,2\n")) == CsvFields{"a", "1"});
  CHECK_THAT(csv_error("a,a\n1,2\n"), contains("t.csv, line 1: two columns have the name 'a'"));
  CHECK_THAT(csv_error("age,town\n1,2\n", {.labels = {"aeg"}}),
             contains("ArgumentError") && contains("no column 'aeg'. Did you mean 'age'? It has: age, town"));
  CHECK_THAT(csv_error("a,b\n1,2\n", {.labels = {"a"}, .drop = {"a"}}), contains("two lists"));
}

TEST_CASE("columns are numbers, text or left out", "[data]") {
  const data::CsvTable table =
      csv_table_of("n,t,c,d\n-1.5e3,x,7,?\n+.25,10,8,text\nNaN,,7,1\n", {.drop = {"d"}, .categories = {"c"}});
  CHECK(csv_names_of(table) == CsvFields{"n", "t", "c"});
  CHECK(csv_fields_of(table.columns[0]) == CsvFields{"-1500", "0.25", "-"});
  CHECK(csv_fields_of(table.columns[1]) == CsvFields{"x", "10", "-"});
  CHECK(table.columns[2].values == CsvFields{"7", "8"});
  CHECK(table.find("t") == &table.columns[1]);
  CHECK(table.find("d") == nullptr);
  // Text only after numbers: the numbers are read again as text.
  const data::CsvTable late = csv_table_of("t\n1\n\"\"\nb\n01\nb\nc\n");
  CHECK(csv_fields_of(late.columns[0]) == CsvFields{"1", "-", "b", "01", "b", "c"});
  const data::CsvTable some = csv_table_of("a,b,c\n1,2,3\n", {.labels = {"c"}, .columns = {"a"}});
  CHECK(csv_names_of(some) == CsvFields{"a", "c"});
}

TEST_CASE("what is missing in a table is known by its words", "[data]") {
  const data::CsvTable table = csv_table_of("x,t\n1,NA\n,na\nNA,N/A\nnull,NULL\nNaN,nan\n-inf,#N/A\nInfinity,?\n?,a\n");
  CHECK(csv_fields_of(table.columns[0]) == CsvFields{"1", "-", "-", "-", "-", "-", "-", "-"});
  CHECK(csv_fields_of(table.columns[1]) == CsvFields{"-", "-", "-", "-", "-", "-", "-", "a"});
}

TEST_CASE("numbers of a table are exact, with a decimal comma too, and in every locale", "[data]") {
  std::string text = "a;b\n";
  const std::vector<std::string> numbers{"0.1",
                                         "123456789012345678",
                                         "9007199254740993",
                                         "1e-400",
                                         "3.4e38",
                                         "-0.000012345",
                                         "1.7976931348623",
                                         "2.2250738585072014e-308",
                                         "1.",
                                         "12345.678901234567",
                                         "00.5",
                                         "1e5"};
  for (const std::string& number : numbers) text += number + ";" + number + "\n";
  std::string with_commas = text;
  std::ranges::replace(with_commas, '.', ',');
  const ProcessLocale german("de_DE");
  for (const std::string& content : {text, with_commas}) {
    const data::CsvTable table = csv_table_of(content);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double expected = 0;
      std::from_chars(numbers[i].data(), numbers[i].data() + numbers[i].size(), expected);
      CHECK(table.columns[1].numbers[i] == expected);
    }
  }
  CHECK_THAT(
      csv_error("a;b\n1,5;1\n1;1\n1.5;1\n"),
      contains("t.csv, line 2: the column 'a' has numbers with a decimal comma, and in line 4 with a decimal point"));
  CHECK_THAT(csv_error("a,b\n\"1,5\",1\n\"2,5\",1\n"),
             contains("t.csv, line 2: the column 'a' has numbers with a decimal "
                      "comma, as '1,5', in a file that commas separate"));
  CHECK_THAT(csv_error("a,b\n1e39,1\n"), contains("t.csv, line 2: column 'a': 1e39 is beyond the range of float"));
  CHECK_THAT(csv_error("a,b\n1e999,1\n"), contains("beyond the range of float"));
  // In a column of text it is a text like others, wherever it stands.
  CHECK(csv_table_of("a,b\n,1\n1e999,2\nx,3\n", {.bad = data::BadRows::skip}).rows == 3);
}

TEST_CASE("digits that may be grouped are not taken for decimals", "[data]") {
  CHECK_THAT(csv_error("a;b\n1,234;x\n987;y\n"),
             contains("t.csv, line 2: '1,234' in the column 'a' may be a number with a decimal comma or one of "
                      "thousands. Say decimal=comma or decimal=point"));
  CHECK_THAT(csv_error("a\tb\n-12,345\t0.5\n1,000\t0.25\n"), contains("'-12,345' in the column 'a'"));
  CHECK_THAT(csv_error("a;b\n1.234;0,5\n2.000;0,25\n"), contains("'1.234' in the column 'a'"));
  CHECK_THAT(csv_error("a;b\n1,234;1\n1.5;1\n"), contains("If commas group digits, say decimal=point"));
  const auto numbers = [](std::string_view text, char decimal) {
    return csv_table_of(text, {.decimal = decimal}).columns[0].numbers;
  };
  using Numbers = std::vector<double>;
  const std::string_view both = "a;b\n1,234;x\n987;y\n";
  CHECK(numbers(both, ',') == Numbers{1.234, 987});
  CHECK(numbers(both, '.') == Numbers{1234, 987});
  CHECK(numbers("a;b\n-1.234.567,5;x\n2.000;y\n", ',') == Numbers{-1234567.5, 2000});
  CHECK(numbers("a,b\n\"1,234.5\",x\n987.25,y\n", '.') == Numbers{1234.5, 987.25});
  CHECK(numbers("a,b\n\"1,5\",x\n\"2,25\",y\n", ',') == Numbers{1.5, 2.25});
  // What only a decimal sign can be: another number of digits, 0 in front, thousands without a sign, or other columns.
  CHECK(numbers("a;b\n1,234;x\n0,5;y\n7;z\n", '\0') == Numbers{1.234, 0.5, 7});
  CHECK(numbers("a;b\n0,234;x\n7;y\n", '\0') == Numbers{0.234, 7});
  CHECK(numbers("a;b\n1,234;x\n1000;y\n", '\0') == Numbers{1.234, 1000});
  CHECK(numbers("a;b\n1,234;0,5\n7;1,5\n", '\0') == Numbers{1.234, 7});
  CHECK(numbers("a;b\n1,234;x\n2,500;y\n", '\0') == Numbers{1.234, 2.5});
  CHECK(numbers("a;b\n1.234;x\n7;y\n", '\0') == Numbers{1.234, 7});
  CHECK_THAT(csv_error("a;b\n1,5;x\n2,5;y\n", {.decimal = '.'}),
             contains("numbers with a decimal comma, as '1,5', in a file with another decimal sign"));
  CHECK_THAT(csv_error("a;b\n1;2\n", {.decimal = ';'}), contains("ArgumentError") && contains("the decimal sign"));
}

TEST_CASE("a bad row is an error with its line, or is left out and named", "[data]") {
  const std::string text = "x,y\n1,a\n2\n3,b,4\n\n5,\nq,c\n7,\"d\"e\n8,f\n";
  data::CsvOptions options{.labels = {"y"}, .numbers = {"x"}};
  CHECK_THAT(csv_error(text, options), contains("t.csv, line 3: 1 field, but the first row has 2"));
  CHECK_THAT(csv_error("x,y\n5,\n", options), contains("t.csv, line 2: column 'y': the label is missing"));
  CHECK_THAT(csv_error("x,y\nq,1\n", options), contains("t.csv, line 2: column 'x': 'q' is no number"));
  options.bad = data::BadRows::skip;
  const CsvWarnings warnings;
  const data::CsvTable table = csv_table_of(text, options);
  CHECK(table.rows == 2);
  CHECK(table.columns[0].numbers == std::vector<double>{1, 8});
  CHECK(csv_fields_of(table.columns[1]) == CsvFields{"a", "f"});
  CHECK(table.skipped_rows == 5);
  CHECK(table.skipped[1] == "line 4: 3 fields, but the first row has 2");
  CHECK_THAT(warnings.text, contains("5 bad rows are left out: line 3: 1 field,"));
  CHECK_THAT(csv_error("x,y\n1\n", options), contains("no rows but bad ones: line 2"));
}

TEST_CASE("rows that a column of text makes good may make another column text", "[data]") {
  const CsvWarnings warnings;
  const data::CsvTable table = csv_table_of("a,b\n1,1\n1e999,x\n1e999,y\nword,1\n", {.bad = data::BadRows::skip});
  CHECK(table.rows == 4);
  CHECK(table.skipped_rows == 0);
  CHECK(csv_fields_of(table.columns[0]) == CsvFields{"1", "1e999", "1e999", "word"});
  CHECK(csv_fields_of(table.columns[1]) == CsvFields{"1", "x", "y", "1"});
}

TEST_CASE("a column that is not clear is refused with what to say", "[data]") {
  CHECK_THAT(csv_error("x,y\n1,a\n2,b\n12o,b\n4,a\n"),
             contains("t.csv, line 4: '12o' in the column 'x' is no number, but 3 of 4 fields are. Say numbers=x"));
  CHECK_THAT(csv_error("x\nkg\n2\n3\n4\n"), contains("line 2: 'kg'"));  // a row of units
  CHECK(csv_table_of("x\n1\n2\nb\n", {.categories = {"x"}}).columns[0].values == CsvFields{"1", "2", "b"});
  std::string text = "x,y\n";
  for (int i = 0; i < 1001; ++i) text += fmt::format("n{},l{}\n", i, i);
  CHECK_THAT(csv_error(text, {.labels = {"y"}}),
             contains("t.csv, line 1002: the column 'x' has more than 1000 different texts, 'n1000' is the next"));
  CHECK(csv_table_of(text, {.labels = {"y"}, .drop = {"x"}}).columns[0].values.size() == 1001);
  CHECK(csv_table_of(text, {.most_categories = 1001}).columns[0].values.size() == 1001);
}

TEST_CASE("row numbers that pandas and R write are no input", "[data]") {
  const CsvWarnings warnings;
  CHECK(csv_names_of(csv_table_of(",a\n0,5\n1,6\n2,6\n")) == CsvFields{"a"});
  CHECK_THAT(warnings.text, contains("counts the rows; it is left out"));
  CHECK(csv_names_of(csv_table_of("\"\",\"a\"\n\"1\",5\n\"2\",6\n")) == CsvFields{"a"});
  CHECK(csv_names_of(csv_table_of(",a\n0,5\n2,6\n")) == CsvFields{"0", "a"});
  CHECK(csv_names_of(csv_table_of("id,a\n0,5\n1,6\n")) == CsvFields{"id", "a"});
}

TEST_CASE("a file that is no table is named for what it is", "[data]") {
  CHECK_THAT(csv_error(""), contains("the table has no rows"));
  CHECK_THAT(csv_error("\n \n"), contains("the table has no rows"));
  CHECK_THAT(csv_error("a,b\n"), contains("the table has no rows"));
  CHECK_THAT(csv_error(std::string_view("\xff\xfe"
                                        "a\0,\0",
                                        6)),
             contains("UTF-16"));
  CHECK_THAT(csv_error(std::string_view("a,b\n1,\0\n", 8)), contains("t.csv, byte 6: a zero byte"));
  CHECK_THAT(csv_error("PK\x03\x04 xlsx"), contains("a workbook"));
  CHECK_THAT(csv_error("a,b\nM\xfcnchen,1\n"), contains("t.csv, line 2: column 'a'") && contains("not in UTF-8"));
  const CsvWarnings warnings;
  const data::CsvTable rest =
      csv_table_of("a,b\nM\xfcnchen,1\nK\xc3\xb6ln,2\nUlm,M\xfc\n", {.bad = data::BadRows::skip});
  CHECK(
      (rest.rows == 1 && rest.skipped_rows == 2 && rest.columns[0].values == std::vector<std::string>{"K\xc3\xb6ln"}));
  CHECK_FALSE(rest.columns[1].is_text);  // what is left out says nothing of its column
  CHECK_THAT(warnings.text, contains("2 bad rows are left out: line 2: column 'a': 'M\\xfcnchen' is not in UTF-8"));
  CHECK(csv_table_of("a,b\nM\xfcnchen,1\n", {.drop = {"a"}}).rows == 1);
  CHECK_THAT(csv_error("M\xfcnchen,b\nx,y\n"), contains("the name 'M\\xfcnchen' is not in UTF-8"));
  CHECK_THAT(thrown([] { static_cast<void>(data::read_csv("none.csv")); }), contains("none.csv: no such file"));
}
