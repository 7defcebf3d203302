// concord train --shares and --sync-batch-norm, on PoCL and the CPU together.
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Environment kPatience{{"CONCORD_DEADLINE", "60"}};

Ended trained(const std::string& network, const Arguments& more) {
  return run_command(
      with({"train", network, "--data", "random,samples=100", "--validate", "none", "--epochs", "1", "--json"}, more),
      kPatience);
}

double loss_of(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return nlohmann::json::parse(ended.out)["train"]["loss"];
}

}  // namespace

TEST_CASE("train --shares has the result of one device with the whole batch", "[cli][collective]") {
  if (!command_is_there()) return;
  if (!contains(run_command({"devices"}).out, "opencl:0")) {
    WARN("skipped: there is no OpenCL device");
    return;
  }
  const Arguments two{"--devices", "cpu,opencl:0", "--batch", "8"};
  const double one = loss_of(trained("mlp", {"--device", "cpu", "--batch", "16"}));
  const Ended split = trained("mlp", with(two, {"--shares", "3,1"}));
  CHECK(loss_of(split) == Approx(one).epsilon(1e-4));
  CHECK_THAT(split.err, contains("the devices split each batch: 75.0 %, 25.0 %"));
  const Ended measured = trained("mlp", with(two, {"--shares", "speed"}));
  CHECK(loss_of(measured) == Approx(one).epsilon(1e-4));
  CHECK_THAT(measured.err, contains("the devices split each batch: "));
  const double of_all = loss_of(trained("resnet20", {"--device", "cpu", "--batch", "16"}));
  const double synchronised = loss_of(trained("resnet20", with(two, {"--shares", "3,1", "--sync-batch-norm"})));
  CHECK(synchronised == Approx(of_all).epsilon(1e-3));
}

TEST_CASE("splits that are none are refused before the ranks start", "[cli][collective]") {
  if (!command_is_there()) return;
  const auto refused = [](const std::string& split, const std::string& text) {
    const Ended ended = trained("mlp", {"--devices", "cpu,opencl:0", "--shares", split});
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, contains(text));
  };
  refused("3,1,1", "3 shares for 2 devices");
  refused("3,x", "a number above 0 for each device");
  refused("-1,1", "a number above 0 for each device");
  for (const Arguments& other : {Arguments{"--shares", "speed"}, Arguments{"--sync-batch-norm"}}) {
    const Ended ended = trained("mlp", with({"--devices", "cpu,opencl:0", "--parallel", "pipeline=2,micro=2"}, other));
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, contains("cannot be used together"));
  }
}

TEST_CASE("a launch of one rank takes the options of several devices", "[cli][collective]") {
  if (!command_is_there()) return;
  const auto launched = [](const Arguments& more) {
    const Arguments train{"launch", "--devices",         cheap_device(), "--",   command_path(), "train", "mlp",
                          "--data", "random,samples=20", "--validate",   "none", "--max-steps",  "1"};
    return run_command(with(train, more), kPatience);
  };
  for (const Arguments& more :
       {Arguments{"--shares", "speed"}, Arguments{"--sync-batch-norm"}, Arguments{"--gradients", "bf16"}}) {
    const Ended ended = launched(more);
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
  const Ended ended = launched({"--shares", "3,1"});
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, contains("--shares 3,1: 2 shares for 1 device\n") && !contains("--devices"));
  const Ended one = launched({"--devices", cheap_device(), "--shares", "3,1"});
  CHECK(one.code == 1);
  CHECK_THAT(one.err, contains("--shares 3,1: 2 shares for 1 device\n"));
  const Ended three = launched({"--devices", "cpu,opencl:0", "--shares", "3,1,1"});
  CHECK(three.code == 1);
  if (!contains(run_command({"devices"}).out, "opencl:0")) return;
  CHECK_THAT(three.err, contains("--shares 3,1,1: 3 shares for 2 devices\n"));
}

TEST_CASE("the only rank of a launch that names devices starts a rank on each", "[cli][collective]") {
  if (!command_is_there()) return;
  if (!contains(run_command({"devices"}).out, "opencl:0")) {
    WARN("skipped: there is no OpenCL device");
    return;
  }
  const Ended ended = run_command(
      {"launch", "--devices", cheap_device(), "--", command_path(), "train", "mlp", "--data", "random,samples=40",
       "--validate", "none", "--batch", "8", "--max-steps", "1", "--devices", "cpu,opencl:0", "--shares", "3,1"},
      kPatience);
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, contains("the devices split each batch: 75.0 %, 25.0 %"));
}
