// Files that version 0.1.0 wrote on 2026-11-25: weights, a checkpoint in the middle of an epoch, a denylist. Later
// versions read them.
#include "cli/process.hpp"
#include "concord/device/denylist.hpp"
#include "goldens.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

/// `concord COMMAND` of the network that the files belong to, on the CPU.
Ended run_on_network(Arguments command, const Arguments& options) {
  command.insert(command.end(), {"mlp:depth=1,width=4", "--data", "random", "--device", "cpu"});
  command.insert(command.end(), options.begin(), options.end());
  return run_command(command);
}

bool is_skipped() {
  if (!command_is_there()) return true;
  const std::vector<DeviceInfo> known = Device::list();
  const bool has_cpu = std::ranges::any_of(known, [](const DeviceInfo& info) { return info.id == "cpu"; });
  if (!has_cpu) WARN("skipped: there is no CPU device");
  return !has_cpu;
}

}  // namespace

TEST_CASE("weights that an earlier version wrote give the same loss", "[cli]") {
  if (is_skipped()) return;
  const Ended ended = run_on_network({"evaluate"}, {"--weights", golden_path("earlier_weights.safetensors")});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("1024 samples, loss 2.38"));
}

TEST_CASE("a checkpoint that an earlier version wrote continues", "[cli]") {
  if (is_skipped()) return;
  const Arguments recipe{"--batch", "32", "--optimizer", "adam", "--epochs", "1"};
  Arguments resumed = recipe, whole = recipe;
  resumed.insert(resumed.end(), {"--resume", golden_path("earlier_checkpoint.safetensors"), "--json"});
  whole.insert(whole.end(), {"--seed", "3", "--json"});
  const Ended continued = run_on_network({"train"}, resumed), at_once = run_on_network({"train"}, whole);
  INFO(continued.err << at_once.err);
  REQUIRE(continued.code == 0);
  REQUIRE(at_once.code == 0);
  const auto loss = [](const Ended& ended) {
    return nlohmann::json::parse(ended.out).at("test").at("loss").get<double>();
  };
  CHECK(std::abs(loss(continued) - loss(at_once)) < 1e-3);
}

TEST_CASE("a denylist that an earlier version wrote is obeyed", "[cli]") {
  const TemporaryFolder cache;
  const Setting folder("CONCORD_CACHE_DIR", cache.path().string());
  const DenylistOrigin origin{"a device", "1.0"};
  write_denylist(origin, {{"product panel", "x"}});  // makes the folder
  write_file(denylist_file(origin),
             R"({"format": "concord-quirks", "version": 1, "library": "0.1.0", "device": "a device",
    "driver": "1.0", "quirks": {"product tiled": "matmul is wrong"}})");
  CHECK(read_denylist(origin) == Denylist{{"product tiled", "matmul is wrong"}});
}

}  // namespace concord::test
