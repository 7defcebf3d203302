// Text as numbers: alphabet, samples, what is refused.
#include "concord/data/text.hpp"

#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("characters become numbers and the next character the label", "[data]") {
  const TemporaryFolder folder;
  const auto path = folder / "text.txt";
  write_file(path, "abcabcabcabcabcabcab");  // 20 characters, 16 of them for training
  const data::Characters text = data::characters(path, {.length = 3, .validation_part = 0.2});
  CHECK(text.alphabet == "abc");
  REQUIRE(text.train.features.spec() == TensorSpec{DType::i32, Shape{5, 3}});
  CHECK(text.train.classes == 3);
  const auto x = text.train.features.values<std::int32_t>(), y = text.train.labels.values<std::int32_t>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(x[i] == static_cast<std::int32_t>(i % 3));
    CHECK(y[i] == static_cast<std::int32_t>((i + 1) % 3));
  }
  CHECK(text.validation.features.spec() == TensorSpec{DType::i32, Shape{1, 3}});
  CHECK(data::decode(text.alphabet, text.validation.features.values<std::int32_t>()) == "bca");
  CHECK(data::decode(text.alphabet, text.validation.labels.values<std::int32_t>()) == "cab");
  const data::Characters dense = data::characters(path, {.length = 3, .stride = 1, .validation_part = 0.2});
  CHECK(dense.train.size() == 13);
}

TEST_CASE("without a validation part all of a text is cut into samples", "[data]") {
  const TemporaryFolder folder;
  const auto path = folder / "text.txt";
  write_file(path, "abcabcabca");
  const data::Characters text = data::characters(path, {.length = 3, .validation_part = 0});
  CHECK(text.train.size() == 3);
  CHECK(text.validation.features.elements() == 0);
  CHECK(data::characters(path, {.length = 9, .validation_part = 0}).train.size() == 1);
  CHECK_THROWS_WITH(data::characters(path, {.length = 10, .validation_part = 0}),
                    contains("has 10 characters; a sample of 10 needs one more"));
}

TEST_CASE("bytes above 127 are characters too", "[data]") {
  const TemporaryFolder folder;
  const auto path = folder / "text.txt";
  write_file(path, "\xc3\xa4\xc3\xb6zz\xc3\xa4\xc3\xb6zz");
  const data::Characters text = data::characters(path, {.length = 2, .validation_part = 0.5});
  CHECK(text.alphabet == "z\xa4\xb6\xc3");
  CHECK(data::decode(text.alphabet, data::encode(text.alphabet, "\xb6z").values<std::int32_t>()) == "\xb6z");
}

TEST_CASE("text is told in a given alphabet", "[data]") {
  const TemporaryFolder folder;
  const auto path = folder / "text.txt";
  write_file(path, "bababababa");
  const data::Characters text = data::characters(path, {.length = 2, .validation_part = 0.5, .alphabet = "\n0ab"});
  CHECK(text.alphabet == "\n0ab");
  CHECK(text.train.classes == 4);
  CHECK(text.train.class_names == std::vector<std::string>{"0x0a", "0", "a", "b"});
  CHECK(data::decode(text.alphabet, text.train.features.values<std::int32_t>()) == "baba");
  CHECK_THROWS_WITH(data::characters(path, {.length = 2, .validation_part = 0.5, .alphabet = "b"}),
                    contains(path.string() + ", byte 1: the character 'a'"));
}

TEST_CASE("text that is too short or strange is refused", "[data]") {
  const TemporaryFolder folder;
  const auto path = folder / "text.txt";
  write_file(path, "hello");
  CHECK_THROWS_WITH(data::characters(path), contains("a sample of 64"));
  write_file(folder / "empty.txt", "");
  CHECK_THROWS_AS(data::characters(folder / "empty.txt"), ArgumentError);
  CHECK_THROWS_AS(data::characters(path, {.length = 0}), ArgumentError);
  CHECK_THROWS_AS(data::characters(path, {.length = 1, .validation_part = 1}), ArgumentError);
  CHECK_THROWS_AS(data::characters(folder / "missing.txt"), IoError);
  CHECK_THROWS_WITH(data::encode("abc", "abd"), contains("byte 2: the character 'd' (0x64)") && contains("of 3"));
  CHECK_THROWS_WITH(data::encode("abc", "a\n"), contains("byte 1: the character 0x0a"));
  CHECK_THROWS_WITH(data::encode("abc", "ab\xc3\xa4"), contains("byte 2: the character '\xc3\xa4' (0xc3)"));
  CHECK_THROWS_WITH(data::encode("abc", "ab\xc3z"), contains("byte 2: the character 0xc3"));
  const std::vector<std::int32_t> beyond{3};
  CHECK_THROWS_AS(data::decode("abc", beyond), ArgumentError);
}
