// Lists with recordings that cannot be read, through the command.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/packing.hpp"
#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a recording that cannot be read does not stop audio:, unless it is to", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 6; ++i) {
    const auto samples = static_cast<std::size_t>(8000 + 100 * i);
    write_file(folder / fmt::format("{}.wav", i), wav(sine(200 + 100 * i, 16000, samples)));
    list += fmt::format("{}.wav {}\n", i, i % 2 == 0 ? "low" : "high");
  }
  write_file(folder / "bad\x1b[31m.wav", "no recording");
  list += "bad\x1b[31m.wav low\nmissing.wav high\n";
  write_file(folder / "list.txt", list);
  const std::string spec = fmt::format("audio:{},mels=16", (folder / "list.txt").string());

  const Ended checked = run_command({"data", "check", spec, "--json", "--quiet"});
  CHECK(checked.code == 1);
  const auto report = nlohmann::json::parse(checked.out);
  REQUIRE(report["bad"].size() == 2);
  CHECK_THAT(report["bad"][0]["name"].get<std::string>(), test::contains("bad\x1b[31m.wav"));
  CHECK_THAT(report["bad"][1]["reason"].get<std::string>(), test::contains("missing.wav: No such file"));
  CHECK(report["columns"][0]["type"] == "f32 [1, 16, 54]");  // of the longest that can be read
  CHECK_THAT(checked.err, test::contains("recordings cannot be read; the longest of the others") &&
                              test::contains("bad\\x1b[31m.wav"));

  const Arguments line{"train",        "mlp:width=4", "--data", spec,         "--device",
                       cheap_device(), "--batch",     "8",      "--validate", "none"};
  const Ended trained = run_command(with(line, {"--bad", "skip"}));
  INFO(trained.err);
  CHECK(trained.code == 0);
  CHECK_THAT(trained.err, test::contains("recordings cannot be read; the longest of the others") &&
                              test::contains("bad\\x1b[31m.wav: is no recording") &&
                              test::contains("missing.wav: No such file") &&
                              test::contains("another sample takes its place") && !test::contains("\x1b["));
  const Ended failed = run_command(with(line, {"--bad", "fail"}));
  CHECK(failed.code == 1);
  CHECK_THAT(failed.err, test::contains("bad\\x1b[31m.wav: is no recording"));

  write_file(folder / "none.txt", "bad\x1b[31m.wav low\nmissing.wav high\n");
  check_refusal({"data", "check", "audio:" + (folder / "none.txt").string()}, 1,
                {"none of the 2 recordings can be read; the first: "});
}
