// concord train --parallel: a network in stages, on two devices of PoCL.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/io/safetensors.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Environment two_devices(const std::string& memory = {}) {
  Environment environment{{"POCL_DEVICES", "pthread pthread"}, {"CONCORD_DEADLINE", "60"}};
  if (!memory.empty()) environment["CONCORD_DEBUG"] = "limit.memory=" + memory + ",limit.allocation=" + memory;
  return environment;
}

bool are_two_devices_there() {
  const Ended listed = run_command({"devices", "--json"}, two_devices());
  if (contains(listed.out, "\"opencl:1\"") && contains(listed.out, "PoCL")) return true;
  WARN("skipped: there is no PoCL with two devices");
  return false;
}

Arguments training(const std::string& network, const Arguments& more) {
  return with({"train", network, "--data", "random,samples=100", "--batch", "8", "--validate", "none"}, more);
}

bool are_equal(const std::filesystem::path& a, const std::filesystem::path& b) {
  const io::TensorMap one = io::read_safetensors(a).tensors, two = io::read_safetensors(b).tensors;
  return std::ranges::equal(one, two, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second.bytes(), y.second.bytes());
  });
}

}  // namespace

TEST_CASE("train --parallel has the weights of --accumulate, and its checkpoint continues", "[cli][pipeline]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const TemporaryFolder folder;
  const std::string one = folder / "one.safetensors", two = folder / "two.safetensors", file = folder / "stages.ckpt";
  const Arguments stages{"--devices", "opencl:0,opencl:1", "--parallel", "pipeline=2,micro=4"};
  const Ended alone = run_command(
      training("mlp", {"--device", "opencl:0", "--accumulate", "4", "--epochs", "2", "--out", one}), two_devices());
  REQUIRE(alone.code == 0);
  const Ended both =
      run_command(training("mlp", with(stages, {"--epochs", "1", "--checkpoint", file, "--json"})), two_devices());
  INFO(both.err);
  REQUIRE(both.code == 0);
  CHECK(nlohmann::json::parse(both.out)["devices"] == 2);
  CHECK_FALSE(contains(both.err, "[rank 1]"));
  const Ended on =
      run_command(training("mlp", with(stages, {"--epochs", "2", "--resume", file, "--out", two})), two_devices());
  INFO(on.err);
  REQUIRE(on.code == 0);
  CHECK(are_equal(one, two));
}

TEST_CASE("a network that one device does not hold trains on two", "[cli][pipeline]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  // Twelve layers of 2048 by 2048: 192 MiB of weights, and as much for gradients and for momentum.
  const std::string network = "mlp:depth=12,width=2048", memory = "600000000";
  const Arguments how{"--epochs", "1", "--max-steps", "4"};
  const Ended alone =
      run_command(training(network, with(how, {"--device", "opencl:0", "--accumulate", "2"})), two_devices(memory));
  CHECK(alone.code == 1);
  CHECK_THAT(alone.err, contains("MiB"));
  const Ended both =
      run_command(training(network, with(how, {"--devices", "opencl:0,opencl:1", "--parallel", "pipeline=2,micro=2"})),
                  two_devices(memory));
  INFO(both.err);
  CHECK(both.code == 0);
}

TEST_CASE("linear layers and a transformer that one device does not hold are divided among two",
          "[cli][model_parallel]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const Arguments how{"--epochs", "1", "--max-steps", "2"};
  const auto check = [&](const std::string& network, const std::string& memory, const std::string& parallel) {
    const Arguments all =
        with({"train", network, "--data", "random,samples=8", "--batch", "2", "--validate", "none"}, how);
    const Ended alone = run_command(with(all, {"--device", "opencl:0"}), two_devices(memory));
    CHECK(alone.code == 1);
    CHECK_THAT(alone.err, contains("MiB"));
    const Ended both =
        run_command(with(all, {"--devices", "opencl:0,opencl:1", "--parallel", parallel}), two_devices(memory));
    INFO(both.err);
    CHECK(both.code == 0);
  };
  // Eight layers of 1024 by 1024: 32 MiB of weights, as much for momentum, and for gradients.
  check("mlp:depth=8,width=1024", "60000000", "hybrid=2");
  // Four blocks of 12 · 384² weights: 27 MiB, and two moments of each.
  check("gpt_tiny:depth=4,width=384,heads=4,length=8", "70000000", "tensor=2");
}

TEST_CASE("train --parallel: what cannot be is refused with a sentence", "[cli][pipeline]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const auto refused = [](const Arguments& more, const std::string& words, int code = 2) {
    const Ended ended = run_command(training("mlp", more), two_devices());
    CHECK(ended.code == code);
    CHECK_THAT(ended.err, contains(words));
  };
  const auto parallel = [](const std::string& text) {
    return Arguments{"--devices", "opencl:0,opencl:1", "--parallel", text};
  };
  refused(parallel("pipeline=3,micro=4"), "3 stages need 3 devices, one for each stage; --devices gives 2");
  refused(parallel("stages=2"), "'stages' is unknown; it must be pipeline=STAGES,micro=BATCHES, tensor=DEVICES or");
  refused(parallel("tensor=3"), "3 parts need 3 devices, one for each; --devices gives 2");
  refused(parallel("hybrid=1"), "hybrid needs at least 2 devices");
  refused(parallel("hybrid"), "hybrid needs a number");
  refused(with(parallel("tensor=2"), {"--shares", "speed"}), "--shares and --parallel cannot be used together");
  refused(parallel("pipeline=2"), "micro needs at least 2 batches");
  refused(parallel("pipeline=2,micro=1"), "micro needs at least 2 batches");
  refused(parallel("pipeline=two,micro=2"), "pipeline needs a number");
  refused(parallel("pipeline=2,micro=2,micro=4"), "micro is given twice");
  refused(with(parallel("pipeline=2,micro=2"), {"--accumulate", "2"}), "--accumulate 2 cannot be used with it");
  refused(with(parallel("pipeline=2,micro=2"), {"--nan-trace"}),
          "nan_trace cannot be used with a network that is divided",
          1);  // the ranks say it
  refused({"--device", "opencl:0", "--parallel", "pipeline=2,micro=2"}, "2 devices, one for each stage, got 1");
}
