// Byte-level BPE: the words of GPT-2's pattern, merges in their order, any bytes, damaged files, and texts as samples.
#include "concord/data/bpe.hpp"

#include <fmt/format.h>

#include "concord/data/bpe/words.hpp"
#include "core/thrown.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using Ids = std::vector<std::int32_t>;
using Merges = std::vector<std::pair<std::string, std::string>>;

/// How vocab.json and merges.txt write a byte.
std::string character_of_byte(std::size_t byte) {
  std::size_t others = 0;
  for (std::size_t b = 0; b <= byte; ++b) {
    const bool prints = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    if (b == byte) {
      const std::size_t character = prints ? b : 256 + others;
      if (character < 0x80) return std::string(1, static_cast<char>(character));
      return {static_cast<char>(0xc0U | character >> 6U), static_cast<char>(0x80U | (character & 0x3fU))};
    }
    others += prints ? 0 : 1;
  }
  return {};
}

/// All bytes have their own value as number; then come the merged tokens, from 256 on.
struct BpeFiles {
  TemporaryFolder folder;
  explicit BpeFiles(const Merges& merges) {
    std::string vocab = "{", lines = "#version: 0.2\n";
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::string text = character_of_byte(byte);
      vocab += fmt::format("\"{}{}\":{},", text == "\"" || text == "\\" ? "\\" : "", text, byte);
    }
    for (std::size_t i = 0; i < merges.size(); ++i) {
      vocab += fmt::format("\"{}{}\":{},", merges[i].first, merges[i].second, 256 + i);
      lines += merges[i].first + " " + merges[i].second + "\n";
    }
    write_file(folder / "vocab.json", vocab + "\"<|endoftext|>\":" + std::to_string(256 + merges.size()) + "}");
    write_file(folder / "merges.txt", lines);
  }
  [[nodiscard]] data::Bpe read() const { return data::Bpe::read(folder / "vocab.json", folder / "merges.txt"); }
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, data::first_word(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

using Words = std::vector<std::string>;

std::string bpe_error(const std::string& vocab, const std::string& merges) {
  const TemporaryFolder folder;
  write_file(folder / "v.json", vocab);
  write_file(folder / "m.txt", merges);
  return thrown([&] { static_cast<void>(data::Bpe::read(folder / "v.json", folder / "m.txt")); });
}

}  // namespace

// As tokenizers 0.23's ByteLevel(add_prefix_space=False) cuts them.
TEST_CASE("a text is cut into words as GPT-2 cuts it", "[data]") {
  CHECK(words_of("it's I'LL we've  two") == Words{"it", "'s", " I", "'", "LL", " we", "'ve", " ", " two"});
  CHECK(words_of("a1 23b...c ?!") == Words{"a", "1", " 23", "b", "...", "c", " ?!"});
  CHECK(words_of("a\n\nb \n c  ") == Words{"a", "\n", "\n", "b", " \n", " c", "  "});
  CHECK(words_of("x\t y\t\tz") == Words{"x", "\t", " y", "\t", "\t", "z"});
  CHECK(words_of(" 's '") == Words{" '", "s", " '"});
  CHECK(words_of("Größe ½٣ é漢字") == Words{"Größe", " ½٣", " é漢字"});
  CHECK(words_of("a\u3000\u00a0b\u200bc") == Words{"a", "\u3000", "\u00a0", "b", "\u200b", "c"});
  CHECK(words_of("e\u0301") == Words{"e", "\u0301"});
  CHECK(words_of("a\xff\xfe!b\xc3") == Words{"a", "\xff\xfe!", "b", "\xc3"});
  CHECK(words_of(std::string("\0\x1c ", 3)) == Words{std::string("\0\x1c", 2), " "});
}

TEST_CASE("kinds of characters are those of Unicode 16", "[data]") {
  using data::CharacterKind;
  CHECK(data::kind_of_character(0x80) == CharacterKind::mark);
  CHECK(data::kind_of_character(0x85) == CharacterKind::space);
  CHECK(data::kind_of_character(0xaa) == CharacterKind::letter);
  CHECK(data::kind_of_character(0xb2) == CharacterKind::number);
  CHECK(data::kind_of_character(0x1c89) == CharacterKind::letter);  // of Unicode 16
  CHECK(data::kind_of_character(0x88f) == CharacterKind::mark);     // of Unicode 17
  CHECK(data::kind_of_character(0x1f600) == CharacterKind::mark);
  CHECK(data::kind_of_character(0x2ebe1) == CharacterKind::mark);
  CHECK(data::kind_of_character(0x10ffff) == CharacterKind::mark);
}

TEST_CASE("tokens are merged in the order of the merges, the leftmost first", "[data]") {
  const BpeFiles files(Merges{{"b", "c"}, {"a", "b"}, {"ab", "ab"}, {"Ġ", "a"}, {"Ã", "¤"}});
  const data::Bpe bpe = files.read();
  CHECK(bpe.size() == 262);
  CHECK(bpe.encode("abc") == Ids{'a', 256});
  CHECK(bpe.encode("ababab") == Ids{258, 257});
  CHECK(bpe.encode("a a") == Ids{'a', 259});
  CHECK(bpe.encode("ä") == Ids{260});
  CHECK(bpe.encode("").empty());
  CHECK(bpe.encode("<|endoftext|>").size() == 13);
  CHECK(bpe.decode(Ids{'a', 256, 259, 260, 261}) == "abc aä<|endoftext|>");
  CHECK_THROWS_AS(bpe.decode(Ids{262}), ArgumentError);
  CHECK_THROWS_AS(bpe.decode(Ids{-1}), ArgumentError);
}

TEST_CASE("long and short words are merged alike", "[data]") {
  const data::Bpe bpe = BpeFiles(Merges{{"a", "b"}, {"ab", "a"}, {"b", "b"}, {"aba", "bb"}, {"Ġ", "Ġ"}}).read();
  // The same letters as many short words and as one long word that no merge crosses: "z" is in none.
  std::string text;
  Ids expected;
  for (int i = 0; i < 300; ++i) {
    std::string part;
    for (int bit = 0; bit < 9; ++bit) part += (i >> bit & 1) != 0 ? 'a' : 'b';
    const Ids tokens = bpe.encode(part);
    expected.insert(expected.end(), tokens.begin(), tokens.end());
    expected.push_back('z');
    text += part + 'z';
  }
  CHECK(bpe.encode(text) == expected);
  const std::string blanks(100001, ' ');
  CHECK(bpe.encode(blanks).size() == 50001);
  CHECK(bpe.decode(bpe.encode(blanks)) == blanks);
}

TEST_CASE("any bytes are the same after encoding and decoding", "[data]") {
  const data::Bpe bpe = BpeFiles(Merges{{"a", "b"}}).read();
  std::string bytes;
  for (int i = 0; i < 2000; ++i) bytes += static_cast<char>(static_cast<unsigned char>(i * i * 31 + i / 7));
  CHECK(bpe.decode(bpe.encode(bytes)) == bytes);
}

TEST_CASE("a vocabulary is kept as the texts of its files", "[data]") {
  const TemporaryFolder folder;
  const std::string vocab = R"({"a":0,"b":1,"ab":2})", merges = "#version: 0.2\na b\n";
  write_file(folder / "v.json", vocab);
  write_file(folder / "m.txt", merges);
  const data::Bpe read = data::Bpe::read(folder / "v.json", folder / "m.txt");
  CHECK(read.vocab() == vocab);
  CHECK(read.merges() == merges);
  const data::Bpe parsed = data::Bpe::parse(read.vocab(), read.merges(), "w.safetensors");
  CHECK(parsed.encode("aab") == read.encode("aab"));
  CHECK(parsed.decode(parsed.encode("aab")) == "aab");
  const auto parse = [&](const std::string& v, const std::string& m) {
    return thrown([&] { static_cast<void>(data::Bpe::parse(v, m, "w.safetensors")); });
  };
  CHECK_THAT(parse("[]", merges), contains("w.safetensors: vocab: is no object"));
  CHECK_THAT(parse(vocab, "a c\n"), contains("w.safetensors: merges, line 1: the vocabulary lacks"));
}

TEST_CASE("damaged vocabularies and merges are errors with the place", "[data]") {
  CHECK(bpe_error("{\"a\":0,\"b\":1,\"ab\":2}", "a b\n") == "nothing");
  CHECK_THAT(bpe_error("[1]", ""), contains("v.json: is no object of tokens"));
  CHECK_THAT(bpe_error("{}", ""), contains("v.json: is no object of tokens"));
  CHECK_THAT(bpe_error("{\"a\":0", ""), contains("v.json"));
  CHECK_THAT(bpe_error("{\"a\":-1}", ""), contains("the token \"a\" has no whole number from 0 to 65536"));
  CHECK_THAT(bpe_error("{\"a\":1.5}", ""), contains("the token \"a\" has no whole number"));
  CHECK_THAT(bpe_error("{\"a\":4000000000}", ""), contains("the token \"a\" has no whole number"));
  CHECK_THAT(bpe_error("{\"a\":1,\"b\":1}", ""), contains("the token \"b\" has the number 1 of another one"));
  const std::string vocab = "{\"a\":0,\"b\":1,\"ab\":2}";
  CHECK_THAT(bpe_error(vocab, "#version\na b\na\n"), contains("m.txt, line 3: \"a\" are not two tokens"));
  CHECK_THAT(bpe_error(vocab, "a b c\n"), contains("m.txt, line 1: \"a b c\" are not two tokens"));
  CHECK_THAT(bpe_error(vocab, "b a\n"), contains("m.txt, line 1: the vocabulary lacks \"ba\""));
  CHECK_THAT(bpe_error(vocab, "a b\r\na b\r\n"),
             contains("m.txt, line 2: these two tokens are merged by a line before"));
  CHECK_THAT(bpe_error(vocab, "a \xe6\xbc\xa2\n"), contains("has a character that stands for no byte"));
  const TemporaryFolder folder;
  write_file(folder / "v.json", vocab);
  write_file(folder / "m.txt", "");
  const data::Bpe bpe = data::Bpe::read(folder / "v.json", folder / "m.txt");
  CHECK_THAT(thrown([&] { static_cast<void>(bpe.encode("abc")); }), contains("byte 2: no token stands for 0x63"));
}

TEST_CASE("texts are samples of tokens and the next token", "[data]") {
  const BpeFiles files(Merges{{"a", "b"}});
  write_file(files.folder / "1.txt", "abab");
  write_file(files.folder / "2.txt", "cabd");
  const std::vector<std::filesystem::path> texts{files.folder / "1.txt", files.folder / "2.txt"};
  const data::Tokens tokens = data::tokens(texts, files.read(), {.length = 1, .validation_part = 0.4});
  const auto x = tokens.train.features.values<std::int32_t>(), y = tokens.train.labels.values<std::int32_t>();
  CHECK(Ids(x.begin(), x.end()) == Ids{256, 256});
  CHECK(Ids(y.begin(), y.end()) == Ids{256, 'c'});
  CHECK(tokens.validation.features.values<std::int32_t>()[0] == 256);
  CHECK(tokens.validation.labels.values<std::int32_t>()[0] == 'd');
  CHECK(tokens.train.classes == 258);
  CHECK_THROWS_AS(data::tokens(texts, files.read(), {.length = 10}), ArgumentError);
  CHECK_THROWS_AS(data::tokens({}, files.read()), ArgumentError);
}
