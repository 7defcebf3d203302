// concord tune as a user runs it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The first OpenCL device of the tests; empty without one, which is reported.
std::string opencl_device() {
  for (const DevicePtr& device : devices()) {
    if (device->info().backend == "opencl") return device->info().id;
  }
  WARN("skipped: no OpenCL device");
  return {};
}

}  // namespace

TEST_CASE("tune measures a network's products and keeps them", "[cli]") {
  if (!command_is_there()) return;
  const std::string device = opencl_device();
  if (device.empty()) return;
  const TemporaryFolder folder;
  const Environment environment{{"CONCORD_TUNING_DIR", folder.path().string()}};
  const Arguments tune{"tune", "mlp", "--batch", "8", "--device", device, "--seconds", "600"};
  Arguments as_json = tune;
  as_json.emplace_back("--json");

  const Ended first = run_command(as_json, environment);
  INFO(first.err);
  REQUIRE(first.code == 0);
  const auto report = nlohmann::json::parse(first.out);
  REQUIRE(report["products"].size() >= 4);
  CHECK(report["failed"].empty());
  CHECK(report["left_out"].empty());
  for (const auto& product : report["products"]) {
    CHECK(product["best_ms"].get<double>() > 0);
    CHECK(product["best_ms"] <= product["planned_ms"]);
    CHECK(product["tried"] == product["candidates"]);
    CHECK(product["refused"].empty());
  }
  REQUIRE(report["programs"].size() == 2);
  for (const auto& program : report["programs"]) {
    CHECK(program["measured"] == program["products"]);
    CHECK(program["best_ms"] <= program["planned_ms"]);
  }
  const std::filesystem::path table = report["stored"].get<std::string>();
  CHECK(table.parent_path() == folder.path());
  const auto stored = nlohmann::json::parse(content_of(table));
  CHECK(stored["format"] == "concord-tuning");
  CHECK(stored["products"].size() == report["products"].size());

  const Ended second = run_command(tune, environment);
  CHECK(second.code == 0);
  CHECK_THAT(second.out, test::contains("already in a table: "));
  CHECK_THAT(second.out, !test::contains("stored in"));
}

TEST_CASE("tune writes where it is told and says what it had no time for", "[cli]") {
  if (!command_is_there()) return;
  const std::string device = opencl_device();
  if (device.empty()) return;
  const TemporaryFolder folder;
  const std::filesystem::path table = folder / "mine.json";
  const Environment environment{{"CONCORD_TUNING_DIR", folder.path().string()}};
  const Ended ended = run_command(
      {"tune", "mlp", "--batch", "8", "--device", device, "--seconds", "0.001", "--again", "--out", table.string()},
      environment);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("no time was left for"));
  const Ended longer = run_command({"tune", "mlp", "--batch", "8", "--device", device, "--out", table.string()});
  CHECK(longer.code == 0);
  CHECK_THAT(longer.out, test::contains("training step: ") && test::contains("inference: ") &&
                             test::contains("stored in " + table.string()));
  CHECK(std::filesystem::exists(table));
  const Ended nowhere = run_command(
      {"tune", "mlp", "--batch", "8", "--device", device, "--again", "--out", (folder / "no/table").string()});
  CHECK(nowhere.code == 1);
  const std::filesystem::path letter = folder / "letter.txt";
  write_file(letter, "Dear");
  const Ended other =
      run_command({"tune", "mlp", "--batch", "8", "--device", device, "--again", "--out", letter.string()});
  CHECK(other.code == 1);
  CHECK_THAT(other.err, test::contains("letter.txt is not replaced"));
  CHECK(content_of(letter) == "Dear");
  CHECK_THAT(nowhere.err, test::contains("no/table"));
}

TEST_CASE("tune refuses what it cannot do", "[cli]") {
  if (!command_is_there()) return;
  CHECK(run_command({"tune", "perceptron"}).code == 2);
  CHECK(run_command({"tune", "mlp", "--seconds", "0"}).code == 2);
  CHECK(run_command({"tune", "mlp", "--batch", "-1"}).code == 2);
  CHECK(run_command({"tune", "--input", "1x8x8"}).code == 2);
  for (const DevicePtr& device : devices()) {
    if (device->info().backend == "opencl") continue;
    const Ended cpu = run_command({"tune", "mlp", "--device", device->info().id});
    CHECK(cpu.code == 1);
    CHECK_THAT(cpu.err, test::contains("nothing to tune"));
  }
}
