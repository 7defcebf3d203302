// The command in a process whose locale has a comma: options are read and results printed with a point.
#include "locale.hpp"

#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("the command reads and prints numbers with a point under every locale", "[cli][locale]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const ProcessLocale locale("de_DE");
  Environment environment{{"LD_PRELOAD", CONCORD_LOCALE_SETTER}, {"LC_ALL", "de_DE.UTF-8"}};
  if (!locale.path().empty()) environment.emplace("LOCPATH", locale.path());
  const std::string data = write_digits(folder.path(), 64, 16), log = (folder / "log.jsonl").string();
  const Ended trained = run_command({"train", "lenet", "--data", data, "--device", cheap_device(), "--epochs", "1",
                                     "--batch", "32", "--lr", "0.125", "--momentum", "0.5", "--log", log},
                                    environment);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, contains("loss 2.") || contains("loss 1."));
  const std::string lines = content_of(log);
  const nlohmann::json line = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  CHECK(line.at("loss").get<double>() > 0.1);
  // What a comma would make of it.
  CHECK_THAT(run_command({"train", "lenet", "--data", data, "--lr", "0,125"}, environment).err,
             contains("0,125 is not a finite number"));
}
