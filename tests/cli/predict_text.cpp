// Predictions that are text: tokens and letters of language models, and transcripts of recordings.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Tokens for the bytes that print, the blank, and four merges: "the", "cat", and both behind a blank.
void write_vocabulary(const TemporaryFolder& folder) {
  nlohmann::json vocab;
  int number = 0;
  for (char c = '!'; c <= '~'; ++c) vocab[std::string(1, c)] = number++;
  for (const char* token : {"\xC4\xA0", "th", "the", "\xC4\xA0the", "ca", "cat",
                            "\xC4\xA0"
                            "cat"})
    vocab[token] = number++;
  write_file(folder / "vocab.json", vocab.dump());
  write_file(folder / "merges.txt", "#version: 0.2\nt h\nth e\n\xC4\xA0 the\nc a\nca t\n\xC4\xA0 cat\n");
}

}  // namespace

TEST_CASE("weights keep the tokens of a language model, and predict writes text", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_vocabulary(folder);
  std::string text;
  for (int i = 0; i < 400; ++i) text += " the cat.";  // three tokens
  write_file(folder / "t.txt", text);
  const std::string file = "text:" + (folder / "t.txt").string(), weights = (folder / "w.safetensors").string();
  const Arguments device{"--device", cheap_device()};
  const std::string tokens =
      fmt::format("{},vocab={},merges={}", file, (folder / "vocab.json").string(), (folder / "merges.txt").string());
  const Ended trained =
      run_command(with({"train", "gpt_tiny:depth=1,width=32,heads=2,length=16", "--data", tokens, "--epochs", "40",
                        "--batch", "8", "--optimizer", "adam", "--lr", "0.01", "--quiet", "--out", weights},
                       device));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  std::filesystem::remove(folder / "vocab.json");
  const Ended evaluated = run_command(with({"evaluate", weights, file}, device));
  INFO(evaluated.err);
  CHECK_THAT(evaluated.out, test::contains("accuracy 100.00 %"));
  const Ended next = run_command(with({"predict", weights, "--data", file, "--count", "1"}, device));
  INFO(next.err);
  CHECK_THAT(next.out, test::contains("\" the\"") || test::contains("\" cat\"") || test::contains("."));
  const Ended more =
      run_command(with({"predict", weights, "--data", file, "--count", "2", "--generate", "6", "--json"}, device));
  INFO(more.err);
  REQUIRE(more.code == 0);
  const std::string written = nlohmann::json::parse(more.out)[0]["text"];
  INFO(written);
  CHECK((written == " the cat. the cat." || written == " cat. the cat. the" || written == ". the cat. the cat"));
  check_refusal(with({"predict", weights, "photo.jpg"}, device), 2,
                {"was trained on text; photo.jpg is an image", "--data text:FILE"});
}

TEST_CASE("a vocabulary may have numbers without a token, which are shown as numbers", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  nlohmann::json vocab;
  for (int i = 0; i < 26; ++i) vocab[std::string(1, static_cast<char>('a' + i))] = 2 * i;
  vocab["\xC4\xA0"] = 52;
  write_file(folder / "vocab.json", vocab.dump());
  write_file(folder / "merges.txt", "#version: 0.2\n");
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat sat on a mat ";
  write_file(folder / "t.txt", text);
  const std::string file = "text:" + (folder / "t.txt").string(), weights = (folder / "w.safetensors").string();
  const Arguments network{
      "train", "gpt_tiny:depth=1,width=16,heads=2,length=16", "--device", cheap_device(), "--quiet", "--out", weights,
      "--data"};
  REQUIRE(run_command(with(network, {fmt::format("{},vocab={},merges={}", file, (folder / "vocab.json").string(),
                                                 (folder / "merges.txt").string()),
                                     "--max-steps", "1", "--batch", "8"}))
              .code == 0);
  // Random words are all numbers below the largest one, each followed by one of the others.
  const Ended random = run_command(with(network, {"random", "--weights", weights, "--epochs", "3", "--optimizer",
                                                  "adam", "--lr", "0.01", "--batch", "64"}));
  INFO(random.err);
  REQUIRE(random.code == 0);
  const Ended written = run_command(
      {"predict", weights, "--data", file, "--count", "1", "--generate", "30", "--json", "--device", cheap_device()});
  INFO(written.err);
  REQUIRE(written.code == 0);
  const std::string words = nlohmann::json::parse(written.out)[0]["text"];
  INFO(words);
  const std::size_t begin = words.find('<'), end = words.find('>');
  REQUIRE(begin < end);
  REQUIRE(end != std::string::npos);
  CHECK(std::stoi(words.substr(begin + 1, end - begin - 1)) % 2 == 1);
  check_refusal({"predict", weights, "--data", file, "--generate", "3", "--top", "2"}, 2, {"--top", "leave --top out"});
  check_refusal({"predict", weights, (folder / "t.txt").string()}, 2, {"was trained on text", "--data text:"});
}

TEST_CASE("letters of a text are written on", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 600; ++i) text += "abc";
  write_file(folder / "t.txt", text);
  const std::string file = "text:" + (folder / "t.txt").string(), weights = (folder / "w.safetensors").string();
  const Arguments device{"--device", cheap_device()};
  const Ended trained =
      run_command(with({"train", "gpt_tiny:depth=1,width=32,heads=2,length=16", "--data", file, "--epochs", "10",
                        "--batch", "8", "--optimizer", "adam", "--lr", "0.01", "--quiet", "--out", weights},
                       device));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const Ended more =
      run_command(with({"predict", weights, "--data", file, "--count", "1", "--generate", "300"}, device));
  INFO(more.err);
  CHECK_THAT(more.out, test::contains("abcabcabcabcabcabc"));
  CHECK(more.out.size() > 300);
}

TEST_CASE("a network for recordings is evaluated by the letters and words that it gets wrong", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 2; ++i) {
    write_file(folder / fmt::format("{}.wav", i), wav(sine(400 + 600 * i, 16000, 8000)));
    list += fmt::format("{}.wav\t{}\n", i, i == 0 ? "ab ba" : "b");
  }
  write_file(folder / "list.txt", list);
  const std::string data = "audio:" + (folder / "list.txt").string(), weights = (folder / "w.safetensors").string();
  const Arguments device{"--device", cheap_device()};
  const Ended trained = run_command(with({"train", "deep_speech_2", "--data", data, "--max-steps", "1", "--batch", "2",
                                          "--validate", "none", "--quiet", "--out", weights},
                                         device));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const Ended evaluated = run_command(with({"evaluate", weights, data, "--json"}, device));
  INFO(evaluated.err);
  REQUIRE(evaluated.code == 0);
  const auto metrics = nlohmann::json::parse(evaluated.out)["metrics"];
  CHECK(metrics["character error rate"] > 0);
  CHECK(metrics["word error rate"] > 0);
  const Ended predicted = run_command(with({"predict", weights, "--data", data}, device));
  INFO(predicted.err);
  CHECK_THAT(predicted.out, test::contains("text") && test::contains("ab ba"));

  // Recordings that no list names; one of them is too long, and one is none.
  write_file(folder / "long.wav", wav(sine(400, 16000, 32000)));
  const std::string wave = (folder / "1.wav").string(), longer = (folder / "long.wav").string();
  const Ended files = run_command(with({"predict", weights, longer, wave, "--json"}, device));
  CHECK(files.code == 1);
  CHECK_THAT(files.err, test::contains("1 of 2 files could not be predicted"));
  const auto texts = nlohmann::json::parse(files.out);
  const Ended below = run_command(with({"predict", weights, folder.path().string(), "--json"}, device));
  CHECK_THAT(below.err, test::contains("1 of 3 files could not be predicted"));
  CHECK(nlohmann::json::parse(below.out).size() == 3);
  check_refusal(with({"predict", weights, wave, "--top", "2"}, device), 2, {"--top", "writes transcripts"});
  CHECK_THAT(texts[0]["error"].get<std::string>(), test::contains("lasts 2.00 s"));
  CHECK(texts[1].contains("text"));
  CHECK_THAT(run_command(with({"predict", weights, longer, wave}, device)).out,
             test::contains("text") && test::contains("lasts 2.00 s"));
  check_refusal(with({"predict", weights, wave, "--sheet", (folder / "s.png").string()}, device), 2,
                {"--sheet shows images"});

  const Ended checked = run_command({"data", "check", data + ",transcripts=yes", "--quiet"});
  CHECK(checked.code == 0);
  CHECK_THAT(checked.out, !test::contains("classes"));
  const Ended guessed = run_command({"data", "check", data, "--quiet"});
  CHECK_THAT(guessed.err, test::contains("2 different labels for 2 recordings; if they are transcripts"));
  CHECK(run_command({"data", "bench", data + ",transcripts=yes", "--seconds", "0.05"}).code == 0);
  check_refusal({"train", "lenet", "--data", data + ",transcripts=yes"}, 2, {"transcripts=yes contradicts lenet"});
}
