// The same training in processes of their own has the same bits, whatever each process finds: its addresses, its
// threads, kernels that it builds or takes from the cache. Within one process: tests/train/repeatability.cpp.
#include "cli/process.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The file of weights after six steps of `concord train`.
std::string trained(const std::string& network, const std::string& device, const std::string& seed) {
  const TemporaryFolder folder;
  const std::string weights = (folder / "net.safetensors").string();
  const Ended ended = run_command({"train", network, "--data", "random", "--device", device, "--batch", "16",
                                   "--max-steps", "6", "--seed", seed, "--out", weights, "--quiet"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return content_of(weights);
}

void check_processes(const std::string& network, int runs) {
  for (const DevicePtr& device : devices()) {
    const std::string& id = device->info().id;
    INFO(network << " on " << id);
    const std::string first = trained(network, id, "4");
    REQUIRE_FALSE(first.empty());
    for (int run = 1; run < runs; ++run) {
      INFO("run " << run);
      CHECK((trained(network, id, "4") == first));
    }
    CHECK((trained(network, id, "5") != first));  // the bits tell of the training
  }
}

}  // namespace

TEST_CASE("trainings in processes of their own have the same bits", "[cli]") {
  if (command_is_there()) check_processes("lenet", 3);
}

TEST_CASE("twenty trainings in processes of their own have the same bits", "[.][slow][repeatability]") {
  if (!command_is_there()) return;
  for (const char* network : {"lenet", "resnet20", "gpt_tiny"}) check_processes(network, 20);
}
