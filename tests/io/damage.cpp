// Files that were changed at random, by chance or on purpose: each is read, or refused as a FormatError.
#include "concord/compare/cases/operator_case.hpp"
#include "concord/core/philox.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::size_t kPrefix = 8;

std::uint32_t below(PhiloxSequence& random, std::size_t limit) {
  return random.below(static_cast<std::uint32_t>(std::max<std::size_t>(limit, 1)));
}

/// Changes `text` in up to four ways.
void damage(std::string& text, PhiloxSequence& random) {
  static const std::vector<std::string> kInserted{"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  "\"",
                                                  ":",
                                                  ",",
                                                  "1e999",
                                                  "-1e999",
                                                  "-1",
                                                  "0.5",
                                                  "null",
                                                  "true",
                                                  "\xff",
                                                  "\xed\xa0\x80",
                                                  std::string(1, '\0'),
                                                  "\\u0000",
                                                  "\\ud800",
                                                  "18446744073709551616",
                                                  "9223372036854775808",
                                                  "4294967296",
                                                  "1e5",
                                                  "[[[[[[[[[[[[[[[[[[[[",
                                                  "{\"a\":{\"a\":",
                                                  "NaN",
                                                  "Infinity",
                                                  "\"dtype\":\"F32\","};
  const std::uint32_t changes = 1 + random.below(4);
  for (std::uint32_t change = 0; change < changes && !text.empty(); ++change) {
    const std::size_t at = below(random, text.size());
    switch (random.below(6)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text[at] = static_cast<char>(text[at] ^ (1 << random.below(8))); break;
      case 2: text.erase(at, 1 + random.below(9)); break;
      case 3: text.insert(at, kInserted[below(random, kInserted.size())]); break;
      case 4: text.insert(at, text.substr(below(random, text.size()), 1 + random.below(40))); break;
      default: text.resize(at);
    }
  }
}

/// A changed header with the length that it has, or a file changed anywhere.
std::string damaged(const std::string& whole, PhiloxSequence& random) {
  if (random.below(4) == 0) {
    std::string file = whole;
    damage(file, random);
    return file;
  }
  std::size_t length = 0;
  for (std::size_t i = kPrefix; i-- > 0;) length = length << 8 | static_cast<unsigned char>(whole[i]);
  std::string header = whole.substr(kPrefix, length);
  damage(header, random);
  std::string file(kPrefix, '\0');
  for (std::size_t i = 0; i < kPrefix; ++i) file[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + whole.substr(kPrefix + length);
}

template <class Read>
void check_damage(const std::string& whole, const std::filesystem::path& file, int trials, Read read) {
  PhiloxSequence random(Philox(7, philox_purpose("damage")));
  int refused = 0;
  for (int trial = 0; trial < trials; ++trial) {
    write_file(file, damaged(whole, random));
    try {
      read(file);
    } catch (const FormatError& error) {
      ++refused;
      if (!contains(error.what(), file.filename().string())) FAIL_CHECK("no file is named: " << error.what());
    } catch (const std::exception& error) {
      FAIL_CHECK("trial " << trial << ": another exception: " << error.what());
    }
  }
  CHECK(refused > trials / 2);
}

std::string with_description(const std::filesystem::path& file, const char* key, const std::string& text) {
  io::write_safetensors(file, {}, {{key, text}});
  return content_of(file);
}

}  // namespace

TEST_CASE("damaged checkpoints and weights are read or refused", "[io]") {
  const TemporaryFolder folder;
  io::CheckpointInfo info;
  info.network = "net";
  info.schedule = {{"rate", "0.1"}};
  info.extra = {{"batch", "10"}};
  const io::TensorMap tensors{{"fc.weight", Tensor(DType::f32, {2, 3})}, {"optim.step", Tensor(DType::i32, Shape{})}};
  io::save_checkpoint(folder / "whole", tensors, info);
  const std::string whole = content_of(folder / "whole");
  check_damage(whole, folder / "file", 6000, [](const auto& file) { static_cast<void>(io::load_checkpoint(file)); });
  check_damage(whole, folder / "file", 3000, [](const auto& file) {
    static_cast<void>(io::load_weights(file, {{"fc.weight", {DType::f32, {2, 3}}}}, {.strict = false}));
  });
}

TEST_CASE("damaged cases of operators are read or refused", "[io]") {
  const TemporaryFolder folder;
  OperatorCase one;
  one.node = "fc/linear";
  one.op = "matmul";
  one.outputs = {"fc/linear"};
  one.inputs = {{"x", Tensor(DType::f32, {2, 3})}};
  one.expected = one.results = {Tensor(DType::f32, {2})};
  one.tolerances = {1e-5};
  one.network = {{"program", "a"}, {"arguments", "[]"}};
  write_case(folder / "whole", one);
  check_damage(content_of(folder / "whole"), folder / "file", 6000,
               [](const auto& file) { static_cast<void>(read_case(file)); });
}

TEST_CASE("descriptions beyond any limit are refused at once", "[io]") {
  const TemporaryFolder folder;
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"a\":";
  const std::vector<std::string> texts{std::string(2'000'000, '['),
                                       objects,
                                       "{\"format\":1e999}",
                                       "{\"format\":-1e400}",
                                       "[1e999]",
                                       "{\"format\":1,\"format\":1}",
                                       "\"" + std::string(1000, '\\') + "\""};
  for (const std::string& text : texts) {
    INFO(text.substr(0, 30));
    static_cast<void>(with_description(folder / "run", "concord.checkpoint", text));
    CHECK_THROWS_AS(io::load_checkpoint(folder / "run"), FormatError);
    static_cast<void>(with_description(folder / "case", "concord.case", text));
    CHECK_THROWS_AS(read_case(folder / "case"), FormatError);
  }
}
