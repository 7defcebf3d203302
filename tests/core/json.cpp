// JSON from outside: every text is read or refused by one kind of error.
#include "concord/core/json.hpp"

#include <fmt/format.h>

#include "concord/core/philox.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

const std::string kText =
    R"({"a": [1, -2.5, 1e300, true, null], "b": {"c": "text \u00e9 \\", "d": 18446744073709551615}})";

/// What is wrong with a text, or nothing.
std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  try {
    static_cast<void>(parse_json(text, "the file", limits));
    return {};
  } catch (const FormatError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("JSON from outside is read, or refused as a FormatError", "[core]") {
  CHECK(refusal(kText).empty());
  CHECK_THAT(refusal("{\"a\": 1e999}"), contains("the file") && contains("1e999"));
  CHECK_THAT(refusal("{\"a\": -1e999}"), contains("1e999"));
  CHECK_THAT(refusal(std::string(2'000'000, '[')), contains("nested too deep"));
  CHECK_THAT(refusal([] {
               std::string text;
               for (int i = 0; i < 1'000'000; ++i) text += "{\"a\":";
               return text;
             }()),
             contains("nested too deep"));
  CHECK_THAT(refusal("[[[[]]]]", {.depth = 3}), contains("nested too deep"));
  CHECK(refusal("[[[]]]", {.depth = 3}).empty());
  CHECK_THAT(refusal("[1, 2, 3]", {.bytes = 5}), contains("9 bytes"));
  CHECK_THAT(refusal("{\"a\": 1, \"b\": 2, \"a\": 3}"), contains("\"a\" occurs twice"));
  CHECK_THAT(refusal("{\"a\": 1,}"), contains("byte 8") && contains("not JSON"));
  CHECK_THAT(refusal("\"\xff\""), contains("not JSON"));
  CHECK_THAT(refusal("NaN"), contains("not JSON"));
  CHECK_THAT(refusal("1 2"), contains("not JSON"));
  CHECK_THAT(refusal(""), contains("not JSON"));
}

TEST_CASE("JSON from outside has the values that the text says", "[core]") {
  for (const std::string& text :
       {kText, std::string("null"), std::string("-7"), std::string("[]"), std::string("{}"), std::string("\"x\""),
        std::string(R"({"": [[], {}, [{"a": {"b": [1, {"c": []}, 2]}}], "x"], "z": {"y": {}}, "y": 1})")}) {
    INFO(text);
    CHECK(parse_json(text, "the file") == nlohmann::json::parse(text));
  }
  CHECK_THAT(refusal(R"([{"a": {}}, {"a": {"b": 1, "b": {}}}])"), contains("\"b\" occurs twice"));
}

TEST_CASE("an object of many objects is read in a time of its size", "[core]") {
  // A scan of the whole for each object would take minutes.
  constexpr std::size_t kMany = 100'000;
  std::string text = "{";
  for (std::size_t i = 0; i < kMany; ++i) text += fmt::format("{}\"name{}\":{{\"n\":[{}]}}", i == 0 ? "" : ",", i, i);
  const nlohmann::json json = parse_json(text + "}", "the file");
  REQUIRE(json.size() == kMany);
  CHECK(json.at("name99999").at("n").at(0) == 99999);
}

TEST_CASE("values of JSON that are missing or of another type are a FormatError", "[core]") {
  const auto read = [](const std::string& text) {
    return read_json(text, "the file", [](const nlohmann::json& json) { return json.at("n").get<int>(); });
  };
  CHECK(read("{\"n\": 7}") == 7);
  for (const char* text : {"{}", "[]", "7", "null", "{\"n\": \"7\"}", "{\"n\": [7]}"}) {
    INFO(text);
    CHECK_THROWS_AS(read(text), FormatError);
    CHECK_THROWS_WITH(read(text), contains("the file"));
  }
}

TEST_CASE("no change of a text of JSON ends in another error", "[core]") {
  PhiloxSequence random(Philox(1, philox_purpose("damage")));
  const std::string inserted = "[{\"\\:,e9.-}]\x80\xff\n0";
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text = kText;
    for (std::uint32_t change = 0; change <= random.below(4); ++change) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
      switch (random.below(5)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, 1 + random.below(8)); break;
        case 2:
          text.insert(at, 1 + random.below(40), inserted[random.below(static_cast<std::uint32_t>(inserted.size()))]);
          break;
        case 3: text.insert(at, text.substr(random.below(static_cast<std::uint32_t>(text.size())), 12)); break;
        default: text.resize(std::max<std::size_t>(at, 1));
      }
    }
    CHECK_NOTHROW(refusal(text));
  }
}

}  // namespace concord::test
