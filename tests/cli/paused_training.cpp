// A training that is stopped as a whole for longer than its deadline, as by `docker pause` or by Slurm.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "cli/port.hpp"
#include "cli/process.hpp"
#include "concord/collective/descendants.hpp"
#include "concord/collective/gloo.hpp"
#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Environment kDeadline{{"POCL_DEVICES", "pthread pthread"}, {"CONCORD_DEADLINE", "5"}};
constexpr std::chrono::seconds kPause{7};

Arguments endless(const std::string& log, const Arguments& devices) {
  return with({"train", "mlp:width=8", "--data", "random,samples=100", "--batch", "10", "--epochs", "1000000",
               "--validate", "none", "--quiet", "--log", log},
              devices);
}

/// Stops the launchers and their ranks for the pause.
void pause(const std::vector<const Process*>& launchers) {
  std::vector<pid_t> all;
  for (const Process* const one : launchers) {
    all.push_back(one->id());
    for (const pid_t rank : collective::descendants_of(one->id(), {})) all.push_back(rank);
  }
  for (const pid_t one : all) ::kill(one, SIGSTOP);
  std::this_thread::sleep_for(kPause);
  for (const pid_t one : all) ::kill(one, SIGCONT);
}

std::ptrdiff_t lines_in(const std::string& log) {
  const std::string text = content_of(log);
  return std::ranges::count(text, '\n');
}

/// Pauses a training of these launchers when it has some epochs, and interrupts it when it has more.
void check_goes_on(const std::string& log, std::vector<Process*> launchers) {
  REQUIRE(wait_until([&] { return lines_in(log) >= 5; }));
  pause({launchers.begin(), launchers.end()});
  const std::ptrdiff_t before = lines_in(log);
  CHECK(wait_until([&] { return lines_in(log) >= before + 5; }));
  launchers[0]->send(SIGINT);
  for (Process* const one : launchers) {
    const Ended ended = one->finish();
    INFO(ended.err);
    CHECK(ended.code == 130);
  }
}

}  // namespace

TEST_CASE("a training that is paused as a whole goes on, on one machine", "[cli][collective]") {
  if (!command_is_there()) return;
  if (!contains(run_command({"devices", "--json"}, kDeadline).out, "\"opencl:1\"")) {
    WARN("skipped: there is no PoCL with two devices");
    return;
  }
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  Process process(command_path(), endless(log, {"--devices", "opencl:0,opencl:1"}), kDeadline);
  check_goes_on(log, {&process});
}

TEST_CASE("a training that is paused as a whole goes on, on two machines", "[cli][collective][nodes]") {
  if (!command_is_there()) return;
  if (cheap_device() != "cpu" || !collective::has_gloo()) {
    WARN("skipped: this build has no Gloo, or no CPU backend");
    return;
  }
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  const Arguments words = endless(
      log, {"--nodes", "2", "--rendezvous", "127.0.0.1:" + free_port(), "--devices", "cpu", "--exchange", "gloo"});
  Process first(command_path(), words, kDeadline), second(command_path(), words, kDeadline);
  check_goes_on(log, {&first, &second});
}
