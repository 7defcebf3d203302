// Training on several devices by the command. PoCL offers a device twice if asked, so two devices are always there.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/io/safetensors.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// For the command: two PoCL devices, opencl:0 and opencl:1.
const Environment kTwoDevices{{"POCL_DEVICES", "pthread pthread"}, {"CONCORD_DEADLINE", "60"}};

bool are_two_devices_there() {
  const Ended listed = run_command({"devices", "--json"}, kTwoDevices);
  const auto found = [&](const char* id) { return listed.out.find(id) != std::string::npos; };
  if (found("\"opencl:1\"") && listed.out.find("PoCL") != std::string::npos) return true;
  WARN("skipped: there is no PoCL with two devices");
  return false;
}

Arguments small_training(const Arguments& more) {
  return with({"train", "mlp", "--data", "random,samples=200", "--batch", "12", "--epochs", "2", "--validate", "none"},
              more);
}

std::map<std::string, std::vector<std::byte>> tensors_of(const std::filesystem::path& file) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const auto& [name, tensor] : io::read_safetensors(file).tensors) {
    all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

}  // namespace

TEST_CASE("train --devices has the weights of --accumulate, and one progress", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const TemporaryFolder folder;
  const std::string one = folder / "one.safetensors", two = folder / "two.safetensors", log = folder / "log.json";
  const Ended alone =
      run_command(small_training({"--device", "opencl:0", "--accumulate", "2", "--out", one}), kTwoDevices);
  INFO(alone.err);
  REQUIRE(alone.code == 0);
  const Ended both = run_command(
      small_training({"--devices", "opencl:0,opencl:1", "--out", two, "--log", log, "--json"}), kTwoDevices);
  INFO(both.err);
  REQUIRE(both.code == 0);
  CHECK((tensors_of(one) == tensors_of(two)));
  CHECK_THAT(both.err, contains("and 1 more") && !contains("[rank 1]"));
  CHECK(nlohmann::json::parse(both.out)["devices"] == 2);
  const std::string lines = content_of(log);
  CHECK(std::ranges::count(lines, '\n') == 4);  // two epochs, the end and the test
}

TEST_CASE("train --devices: wrong devices are refused", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const auto refused = [](const std::string& devices) {
    return run_command(small_training({"--devices", devices}), kTwoDevices);
  };
  const Ended twice = refused("opencl:0,opencl:0");
  CHECK(twice.code == 2);
  CHECK_THAT(twice.err, contains("names opencl:0 twice"));
  const Ended unknown = refused("opencl:0,opencl:7");
  CHECK(unknown.code == 1);
  CHECK_THAT(unknown.err, contains("no device matches \"opencl:7\""));
  CHECK(run_command(small_training({"--devices", "opencl:0", "--device", "cpu"}), kTwoDevices).code == 2);
}

TEST_CASE("a rank that is killed ends the others, and the command names it", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  // Rank 1 kills itself as soon as both train.
  const std::string script = "if [ $RANK = 1 ]; then (sleep 4; kill -9 $$) & fi; exec " + command_path() +
                             " train mlp --data random,samples=200 --batch 12 --epochs 100000 --validate none --quiet";
  const Ended ended = run_command({"launch", "--devices", "opencl:0,opencl:1", "--", "sh", "-c", script}, kTwoDevices);
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, contains("concord: rank 1 (opencl:1) was ended by signal 9"));
  CHECK_THAT(ended.err, contains("rank 1 (process") && contains("has ended"));
}

TEST_CASE("a program of its own exit code is reported by launch", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const Ended ended = run_command({"run", "--devices", "opencl:0,opencl:1", "--", "sh", "-c",
                                   "echo $RANK/$WORLD_SIZE $CONCORD_DEVICE; echo note >&2; exit $((RANK * 3))"},
                                  kTwoDevices);
  CHECK(ended.code == 1);
  CHECK(ended.out == "0/2 opencl:0\n");
  CHECK_THAT(ended.err, contains("[rank 1] note\n") && contains("rank 1 (opencl:1) ended with exit code 3"));
}
