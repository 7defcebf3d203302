// Names of files as an attacker or another system may make them, in what `concord predict` prints.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/table/csv.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const std::string kPicture = "P5 4 4 255\n" + std::string(16, 'a');

}  // namespace

TEST_CASE("names of files with control characters and without UTF-8 do no harm in predictions", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string digits = write_digits(folder / "digits", 40, 20), net = (folder / "net.safetensors").string();
  REQUIRE(run_command(train(digits, {"--quiet", "--out", net})).code == 0);
  const std::string evil = "e\x1b[31mvil\nname.pgm", foreign = "caf\xE9, 1.pgm";
  std::filesystem::create_directory(folder / "new");
  write_file(folder / "new" / evil, kPicture);
  write_file(folder / "new" / foreign, kPicture);
  write_file(folder / "new/12", kPicture);
  write_file(folder / "new/b\x1broken.pgm", "nothing");
  const Arguments command{"predict",
                          net,
                          (folder / "new" / evil).string(),
                          (folder / "new" / foreign).string(),
                          (folder / "new/12").string(),
                          (folder / "new/b\x1broken.pgm").string(),
                          "--device",
                          cheap_device()};
  const Ended shown = run_command(command);
  CHECK(shown.code == 1);
  CHECK_THAT(shown.out, test::contains("e\\x1b[31mvil\\x0aname.pgm") && test::contains("caf\\xe9, 1.pgm") &&
                            !test::contains("\x1b"));
  CHECK(std::ranges::count(shown.out, '\n') == 5);

  const Ended json = run_command(with(command, {"--json"}));
  CHECK(is_utf8(json.out));
  const auto all = nlohmann::json::parse(json.out);
  CHECK(all[0]["sample"] == (folder / "new" / evil).string());
  CHECK(all[1]["sample"] == (folder / "new").string() + "/caf\\xe9, 1.pgm");
  CHECK(all[2]["sample"] == (folder / "new/12").string());

  const Ended csv = run_command(with(command, {"--format", "csv"}));
  CHECK(is_utf8(csv.out));
  write_file(folder / "out.csv", csv.out);
  const data::CsvTable table = data::read_csv(folder / "out.csv", {.categories = {"sample", "predicted"}});
  CHECK(table.rows == 4);
  REQUIRE(table.find("sample") != nullptr);
  CHECK(std::ranges::count(table.find("sample")->values, (folder / "new" / evil).string()) == 1);
  REQUIRE(table.find("error") != nullptr);
  CHECK(table.find("error")->values.size() == 1);
}
