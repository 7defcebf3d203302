// Training on several machines by the command. One machine stands for two: each has its own `concord`, and they
// exchange by TCP.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/port.hpp"
#include "cli/process.hpp"
#include "concord/collective/gloo.hpp"
#include "concord/collective/rendezvous.hpp"
#include "concord/io/safetensors.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

bool can_train_on_nodes() {
  if (!command_is_there()) return false;
  if (cheap_device() == "cpu" && collective::has_gloo()) return true;
  WARN("skipped: this build has no Gloo, or no CPU backend");
  return false;
}

const Environment kPatient{{"CONCORD_DEADLINE", "60"}};

Arguments on_nodes(const std::string& port, const Arguments& more = {}) {
  return with({"--nodes", "2", "--rendezvous", "127.0.0.1:" + port, "--devices", "cpu", "--exchange", "gloo"}, more);
}

Arguments lenet(const Arguments& more) {
  return with(
      {"train", "lenet", "--data", "random,samples=100", "--batch", "12", "--epochs", "2", "--validate", "none"}, more);
}

/// `launch` of a training that does not end, in which rank 1 does `deed` to itself after some epochs. Its processes
/// write their numbers into the file `pids`, and their log beside it.
Arguments launch_with(const std::string& port, const std::string& deed, const std::string& pids) {
  const std::string log = pids + ".log";
  const std::string lives = "kill -0 $$ 2>/dev/null && ";
  const std::string when_trained =
      "while " + lives + "[ \"$(cat " + log + " 2>/dev/null | wc -l)\" -lt 5 ]; do sleep 0.02; done; " + lives;
  const std::string script = "echo $$ >>" + pids + "; if [ $RANK = 1 ]; then (" + when_trained + deed +
                             ") >/dev/null 2>&1 & fi; exec " + command_path() +
                             " train mlp --data random,samples=200 --batch 12 --epochs 100000 --validate none "
                             "--device cpu --quiet --log " +
                             log;
  return with(with({"launch"}, on_nodes(port)), {"--", "sh", "-c", script});
}

int living(const std::string& pids) {
  std::ifstream file(pids);
  int count = 0, pid = 0;
  while (file >> pid) count += ::kill(pid, 0) == 0 ? 1 : 0;
  return count;
}

bool has_text(const std::string& file) {
  std::error_code error;
  return std::filesystem::file_size(file, error) > 0 && !error;
}

std::map<std::string, std::vector<std::byte>> weights_in(const std::filesystem::path& file) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const auto& [name, tensor] : io::read_safetensors(file).tensors) {
    all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

}  // namespace

TEST_CASE("train --nodes has the weights of --accumulate", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string one = folder / "one.safetensors", two = folder / "two.safetensors", port = free_port();
  const Ended alone = run_command(lenet({"--device", "cpu", "--accumulate", "2", "--out", one}));
  INFO(alone.err);
  REQUIRE(alone.code == 0);
  const Arguments words = lenet(on_nodes(port, {"--out", two, "-v"}));
  Process first(command_path(), words, kPatient), second(command_path(), words, kPatient);
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other machine\n" << b.err);
  REQUIRE(a.code == 0);
  REQUIRE(b.code == 0);
  CHECK((weights_in(one) == weights_in(two)));
  // The one that served the rendezvous has rank 0, which reports.
  CHECK((contains(a.err, "epoch 2/2") != contains(b.err, "epoch 2/2")));
  CHECK_THAT(a.err + b.err, contains("parts by gloo") && contains("[rank 1]") && !contains("[rank 0]"));
}

TEST_CASE("processes of another launcher exchange by TCP", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const std::string port = free_port();
  const auto variables = [&](const std::string& rank) {
    return Environment{
        {"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"MASTER_ADDR", "127.0.0.1"},   {"MASTER_PORT", port},         {"CONCORD_EXCHANGE", "gloo"},
        {"CONCORD_INTERFACE", "lo"},    {"CONCORD_DEADLINE", "60"}};
  };
  const Arguments words = lenet({"--devices", "cpu", "-v"});
  Process first(command_path(), words, variables("0")), second(command_path(), words, variables("1"));
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other one\n" << b.err);
  CHECK(a.code == 0);
  CHECK(b.code == 0);
  CHECK_THAT(a.err, contains("rank 0 of 2") && contains("parts by gloo"));
}

TEST_CASE("a rank that is killed ends the ranks of all machines, which name it", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string port = free_port(), pids = folder / "pids";
  const Arguments words = launch_with(port, "kill -9 $$", pids);
  Process first(command_path(), words, kPatient), second(command_path(), words, kPatient);
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other machine\n" << b.err);
  CHECK(a.code == 1);
  CHECK(b.code == 1);
  CHECK_THAT(a.err, contains("concord: rank 1 (cpu on ") && contains(") was ended by signal 9"));
  CHECK_THAT(b.err, contains("concord: rank 1 (cpu on ") && contains(") was ended by signal 9"));
  CHECK_THAT(a.err + b.err, contains("rank 1 (process ") && contains("has left the training"));
  CHECK(living(pids) == 0);
}

TEST_CASE("a rank that stands still ends the ranks of all machines after the deadline", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string port = free_port(), pids = folder / "pids";
  const Arguments words = launch_with(port, "kill -STOP $$", pids);
  const Environment hurried{{"CONCORD_DEADLINE", "8"}};
  Process first(command_path(), words, hurried), second(command_path(), words, hurried);
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other machine\n" << b.err);
  CHECK(a.code == 1);
  CHECK(b.code == 1);
  CHECK_THAT(a.err + b.err, contains("rank 1 (process ") && contains("did not answer for 8 s"));
  CHECK(living(pids) == 0);
}

TEST_CASE("a rank that cannot write its checkpoint ends all, which name it", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string port = free_port();
  // The folder of the checkpoint is gone after some epochs, and does not come back.
  const std::string place = folder / "disk", log = folder / "log";
  std::filesystem::create_directory(place);
  const Arguments words = with({"train", "mlp", "--data", "random,samples=200", "--batch", "12", "--epochs", "100000",
                                "--validate", "none", "--quiet", "--checkpoint", place + "/checkpoint", "--log", log},
                               on_nodes(port));
  Process first(command_path(), words, kPatient), second(command_path(), words, kPatient);
  REQUIRE(wait_until([&] { return std::filesystem::exists(place + "/checkpoint"); }));
  std::filesystem::rename(place, folder / "elsewhere");
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other machine\n" << b.err);
  CHECK(a.code == 1);
  CHECK(b.code == 1);
  CHECK_THAT(a.err + b.err, contains("cannot write " + place + "/checkpoint"));
  CHECK_THAT(a.err, contains("\nconcord: rank 0 ("));
  CHECK_THAT(b.err, contains("\nconcord: rank 0 ("));
  CHECK_FALSE(contains(a.err + b.err, "concord: rank 1 ("));
}

TEST_CASE("an interrupt on one machine ends the training on all", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string port = free_port(), pids = folder / "pids";
  const Arguments words = launch_with(port, ":", pids);
  Process first(command_path(), words, kPatient), second(command_path(), words, kPatient);
  REQUIRE(wait_until([&] { return has_text(pids + ".log"); }));  // they train, so they catch the signal
  REQUIRE(living(pids) == 2);
  second.send(SIGINT);
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other machine\n" << b.err);
  CHECK(a.code == 130);
  CHECK(b.code == 130);
  CHECK(living(pids) == 0);
}

TEST_CASE("machines that do not meet are reported", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const Environment hurried{{"CONCORD_DEADLINE", "1"}};
  const auto launched_at = [&](const std::string& place, const Arguments& more = {}) {
    return run_command(
        with(with({"launch", "--nodes", "2", "--rendezvous", place, "--devices", "cpu"}, more), {"--", "true"}),
        hurried);
  };
  const auto check = [](const Ended& ended, const std::string& text, int code = 1) {
    CHECK(ended.code == code);
    CHECK_THAT(ended.err, contains(text));
    CHECK(std::ranges::count(ended.err, '\n') == 1);
  };
  const std::string port = free_port();
  check(launched_at("127.0.0.1:" + port), "1 of 2 machines came to 127.0.0.1:" + port + " within 1 s");
  check(launched_at("192.0.2.7:29400"), "192.0.2.7:29400, where the machines of the training meet, cannot be reached");
  check(launched_at("no-such-machine.invalid:29400"), "there is no machine \"no-such-machine.invalid\"");
  check(launched_at("127.0.0.1"), "must be HOST:PORT", 2);
  check(launched_at("127.0.0.1:70000"), "must be HOST:PORT", 2);
  check(launched_at("127.0.0.1:" + port, {"--interface", "nosuch0"}), "no network interface \"nosuch0\"; it has ");
  const OpenPort taken;
  check(launched_at("127.0.0.1:" + taken.number()), "port " + taken.number() + " cannot be opened");
}

TEST_CASE("machines with other numbers of machines are refused", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const std::string place = "127.0.0.1:" + free_port();
  const auto words = [&](const char* nodes) {
    return Arguments{"launch", "--nodes", nodes, "--rendezvous", place, "--devices", "cpu", "--", "true"};
  };
  Process first(command_path(), words("2"), kPatient), second(command_path(), words("3"), kPatient);
  const Ended a = first.finish(), b = second.finish();
  INFO(a.err << "\n--- the other machine\n" << b.err);
  CHECK(a.code == 1);
  CHECK(b.code == 1);
  CHECK_THAT(a.err, contains("was started with --nodes 2") || contains("with --nodes 3"));
  CHECK_THAT(b.err, contains("was started with --nodes 2") || contains("with --nodes 3"));
}

TEST_CASE("a range of machines starts with those that have come", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const Environment hurried{{"CONCORD_DEADLINE", "3"}};
  const std::string place = "127.0.0.1:" + free_port();
  const auto launched = [&](const char* nodes, const std::string& script) {
    return Arguments{"launch", "--nodes", nodes, "--rendezvous", place, "--devices", "cpu", "--", "sh", "-c", script};
  };
  const std::string says = "echo rank $RANK of $WORLD_SIZE, at least $CONCORD_MIN_RANKS";
  const TemporaryFolder folder;
  const std::string started = folder / "started", end = folder / "end";
  const std::string waits = "; touch " + started + "; while [ ! -e " + end + " ]; do sleep 0.02; done";
  Process alone(command_path(), launched("1:2", says + waits), hurried);
  REQUIRE(wait_until([&] { return std::filesystem::exists(started); }));
  const Ended late = run_command(launched("1:2", says), hurried);
  CHECK(late.code == 1);
  CHECK_THAT(late.err, contains("the training at " + place + " has started with 1 of 2 machines, without this one"));
  write_file(end, "");
  const Ended first = alone.finish();
  INFO(first.err);
  CHECK(first.code == 0);
  CHECK(first.out == "rank 0 of 1, at least 1\n");
  const Ended few = run_command(launched("2:3", says), {{"CONCORD_DEADLINE", "1"}});
  CHECK(few.code == 1);
  CHECK_THAT(few.err, contains("1 of 2:3 machines came to " + place + " within 1 s"));
  Process a(command_path(), launched("1:2", says), kPatient), b(command_path(), launched("1:2", says), kPatient);
  const Ended one = a.finish(), two = b.finish();
  INFO(one.err << "\n--- the other machine\n" << two.err);
  CHECK(one.code == 0);
  CHECK(two.code == 0);
  CHECK(one.out + two.out == "rank 0 of 2, at least 1\n");  // of the first rank
}

TEST_CASE("a launcher that was killed before the start is replaced", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string place = "127.0.0.1:" + free_port();
  const auto words = [&](const std::string& script) {
    return Arguments{"launch", "--nodes", "3", "--rendezvous", place, "--devices", "cpu", "--", "sh", "-c", script};
  };
  // Started first, so it serves the meeting and has rank 0.
  Process first(command_path(), words("echo $WORLD_SIZE"), kPatient);
  const collective::Machines machines = collective::machines_at(place, 3);
  std::unique_ptr<collective::Store> store;
  REQUIRE(wait_until([&] {
    try {
      store = std::make_unique<collective::Store>(machines.host, machines.port, std::chrono::seconds(60));
    } catch (const RankLost&) {
    }
    return store != nullptr;
  }));
  REQUIRE_FALSE(store->get("node0").empty());
  {
    Process killed(command_path(), words("true"), kPatient);
    REQUIRE_FALSE(store->get("node1").empty());
  }
  Process second(command_path(), words("true"), kPatient);
  REQUIRE_FALSE(store->get("node2").empty());
  Process third(command_path(), words("true"), kPatient);
  const Ended a = first.finish(), b = second.finish(), c = third.finish();
  INFO(a.err << "\n--- " << b.err << "\n--- " << c.err);
  CHECK(a.code == 0);
  CHECK(b.code == 0);
  CHECK(c.code == 0);
  CHECK(a.out == "3\n");
}

TEST_CASE("a training starts on one of a range of machines", "[cli][collective][nodes]") {
  if (!can_train_on_nodes()) return;
  const TemporaryFolder folder;
  const std::string one = folder / "one.safetensors", range = folder / "range.safetensors";
  REQUIRE(run_command(lenet({"--device", "cpu", "--out", one})).code == 0);
  const Ended ended = run_command(
      lenet({"--nodes", "1:2", "--rendezvous", "127.0.0.1:" + free_port(), "--devices", "cpu", "--out", range}),
      {{"CONCORD_DEADLINE", "2"}});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK((weights_in(range) == weights_in(one)));
}

TEST_CASE("options of several machines belong together", "[cli][collective][nodes]") {
  if (!command_is_there()) return;
  const auto code = [](const Arguments& more) { return run_command(lenet(more)).code; };
  CHECK(code({"--nodes", "2", "--devices", "cpu"}) == 2);
  CHECK(code({"--nodes", "2", "--rendezvous", "a:1"}) == 2);
  CHECK(code({"--rendezvous", "a:1", "--devices", "cpu"}) == 2);
  CHECK(code({"--exchange", "smoke", "--devices", "cpu"}) == 2);
  for (const std::string wrong : {"4:2", "0:2", "2:", ":2", "two", "2:2000", "1:2:3"}) {
    const Ended range = run_command(lenet({"--nodes", wrong, "--rendezvous", "a:1", "--devices", "cpu"}));
    CHECK(range.code == 2);
    CHECK_THAT(range.err, contains("--nodes " + wrong + ": must be a number of machines from 1 to 1024, or a range"));
  }
  const Ended alone = run_command(lenet({"--exchange", "gloo", "--device", "cpu"}));
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, contains("--exchange and --interface are for a training on several devices"));
  if (collective::has_gloo()) return;
  const Ended without = run_command(lenet({"--nodes", "2", "--rendezvous", "127.0.0.1:29400", "--devices", "cpu"}));
  CHECK(without.code == 1);
  CHECK_THAT(without.err, contains("built without Gloo") && contains("libgloo-dev"));
}
