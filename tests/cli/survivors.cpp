// Trainings by the command that go on when a rank is killed or stopped.
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "cli/port.hpp"
#include "cli/process.hpp"
#include "concord/collective/gloo.hpp"
#include "concord/io/safetensors.hpp"
#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Environment kTwoDevices{{"POCL_DEVICES", "pthread pthread"}, {"CONCORD_DEADLINE", "4"}};

bool are_two_devices_there() {
  if (run_command({"devices", "--json"}, kTwoDevices).out.find("\"opencl:1\"") != std::string::npos) return true;
  WARN("skipped: there is no PoCL with two devices");
  return false;
}

const Arguments kTraining{"train", "mlp",      "--data", "random,samples=200", "--batch",
                          "12",    "--epochs", "40",     "--validate",         "none"};

/// A line of shell that sends `signal` to this process, as rank `rank`, when the log has five epochs.
std::string signals_rank(int rank, const std::string& signal, const std::string& log) {
  return fmt::format(
      "if [ $RANK = {} ]; then (while [ \"$(wc -l < {})\" -lt 5 ]; do sleep 0.02; done; kill -{} $$) & fi; exec \"$@\"",
      rank, log, signal);
}

Ended run_and_lose(int rank, const std::string& signal, const TemporaryFolder& folder, const std::string& out) {
  const std::string log = folder / ("log" + signal + std::to_string(rank));
  write_file(log, "");
  Arguments words{"launch",      "--devices",   "opencl:0,opencl:1",
                  "--min-ranks", "1",           "--",
                  "sh",          "-c",          signals_rank(rank, signal, log),
                  "sh",          command_path()};
  words = with(words, kTraining);
  return run_command(with(words, {"--out", out, "--log", log, "--json"}), kTwoDevices);
}

std::map<std::string, std::vector<float>> weights_in(const std::string& file) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, tensor] : io::read_safetensors(file).tensors) {
    all[name].assign(tensor.values<float>().begin(), tensor.values<float>().end());
  }
  return all;
}

}  // namespace

TEST_CASE("a training goes on when a rank is killed or stopped, with the same weights", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const TemporaryFolder folder;
  const std::string one = folder / "one.safetensors", out = folder / "out.safetensors";
  const Ended alone =
      run_command(with(kTraining, {"--device", "opencl:0", "--accumulate", "2", "--out", one}), kTwoDevices);
  INFO(alone.err);
  REQUIRE(alone.code == 0);
  for (const std::string signal : {"KILL", "STOP"}) {
    for (const int rank : {0, 1}) {
      INFO(signal << " to rank " << rank);
      std::filesystem::remove(out);
      const Ended ended = run_and_lose(rank, signal, folder, out);
      INFO(ended.err);
      CHECK(ended.code == 0);
      CHECK_THAT(ended.err, contains(fmt::format("rank {} (opencl:{}) was ended by signal 9", rank, rank)) &&
                                contains("goes on after step") && contains("with 1 of 2 devices"));
      CHECK_THAT(ended.out, contains("\"devices\": 1"));  // of the rank that is left
      REQUIRE(std::filesystem::exists(out));
      CHECK((weights_in(out) == weights_in(one)));
    }
  }
}

TEST_CASE("a rank ends before it joins the others", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  Environment patient = kTwoDevices;
  patient["CONCORD_DEADLINE"] = "60";
  const auto start = [&](int lost, const Arguments& more) {
    Arguments words = with({"launch", "--devices", "opencl:0,opencl:1"}, more);
    words = with(words,
                 {"--", "sh", "-c", fmt::format("[ $RANK = {} ] && exit 3; exec \"$@\"", lost), "sh", command_path()});
    words = with(words, kTraining);
    return run_command(with(words, {"--json"}), patient);
  };
  for (const int lost : {0, 1}) {
    INFO("rank " << lost);
    const auto begin = std::chrono::steady_clock::now();
    const Ended none = start(lost, {});
    CHECK(none.code == 1);
    CHECK_THAT(none.err, contains(fmt::format("rank {} ended before it joined the training", lost)) &&
                             contains(fmt::format("rank {} (opencl:{}) ended with exit code 3", lost, lost)));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    const Ended one = start(lost, {"--min-ranks", "1"});
    INFO(one.err);
    CHECK(one.code == 0);
    CHECK_THAT(one.err, contains("ended with exit code 3; the others go on"));
    CHECK_THAT(one.out, contains("\"devices\": 1"));
  }
}

TEST_CASE("a rank has the variables of its launcher, not those that it was started with", "[cli][collective]") {
  if (!command_is_there()) return;
  const Ended ended =
      run_command({"launch", "--devices", "cpu", "--", "sh", "-c", "env | grep -E '^(RANK|WORLD_SIZE)='"},
                  {{"RANK", "7"}, {"WORLD_SIZE", "9"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK((ended.out == "RANK=0\nWORLD_SIZE=1\n" || ended.out == "WORLD_SIZE=1\nRANK=0\n"));
}

TEST_CASE("a launch that was started to ignore SIGHUP goes on, as under nohup", "[cli][collective]") {
  if (!command_is_there() || cheap_device() != "cpu") return;
  const Arguments shell{
      "-c", "trap '' HUP; exec \"$@\"",           "sh", command_path(), "launch", "--devices", "cpu", "--", "sh",
      "-c", "echo up >&2; sleep 1; echo down >&2"};
  Process process("/bin/sh", shell);
  REQUIRE(process.wait_for_error_text("up"));
  process.send(SIGHUP);
  const Ended ended = process.finish();
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, contains("down"));
}

TEST_CASE("a launch without --min-ranks takes CONCORD_MIN_RANKS", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  Environment least = kTwoDevices;
  const auto launched = [&](const std::string& number, const Arguments& more = {}) {
    least["CONCORD_MIN_RANKS"] = number;
    return run_command(with(with({"launch", "--devices", "opencl:0,opencl:1"}, more),
                            {"--", "sh", "-c", "[ $RANK = 1 ] && exit 3; echo $CONCORD_MIN_RANKS"}),
                       least);
  };
  const Ended one = launched("1");
  CHECK(one.code == 0);
  CHECK(one.out == "1\n");
  CHECK_THAT(one.err, contains("rank 1 (opencl:1) ended with exit code 3; the others go on"));
  CHECK(launched("1", {"--min-ranks", "2"}).code == 1);  // the option counts
  const Ended many = launched("3");
  CHECK(many.code == 2);
  CHECK_THAT(many.err, contains("CONCORD_MIN_RANKS is 3, but --devices names 2"));
  CHECK(launched("few").code == 2);
}

TEST_CASE("train --min-ranks: wrong numbers are refused", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const auto refused = [](const Arguments& more) { return run_command(with(kTraining, more), kTwoDevices); };
  const Ended many = refused({"--devices", "opencl:0,opencl:1", "--min-ranks", "3"});
  CHECK(many.code == 2);
  CHECK_THAT(many.err, contains("--min-ranks is 3, but --devices names 2"));
  CHECK(refused({"--devices", "opencl:0,opencl:1", "--min-ranks", "0"}).code == 2);
  CHECK(refused({"--min-ranks", "1"}).code == 2);
}

TEST_CASE("a training on two machines goes on when a rank is killed or stopped", "[cli][collective][nodes]") {
  if (!command_is_there()) return;
  if (cheap_device() != "cpu" || !collective::has_gloo()) {
    WARN("skipped: this build has no Gloo, or no CPU backend");
    return;
  }
  const TemporaryFolder folder;
  const std::string one = folder / "one.safetensors", out = folder / "out.safetensors";
  const Ended alone = run_command(with(kTraining, {"--device", "cpu", "--accumulate", "2", "--out", one}));
  INFO(alone.err);
  REQUIRE(alone.code == 0);
  const Environment patient{{"CONCORD_DEADLINE", "6"}};
  for (const std::string signal : {"KILL", "STOP"}) {
    const int rank = signal == "KILL" ? 0 : 1;
    INFO(signal << " to rank " << rank);
    std::filesystem::remove(out);
    const std::string log = folder / ("log" + signal);
    write_file(log, "");
    const Arguments start{"launch",    "--nodes",     "2",          "--rendezvous", "127.0.0.1:" + free_port(),
                          "--devices", "cpu",         "--exchange", "gloo",         "--min-ranks",
                          "1",         "--",          "sh",         "-c",           signals_rank(rank, signal, log),
                          "sh",        command_path()};
    const Arguments words = with(with(start, kTraining), {"--device", "cpu", "--out", out, "--log", log, "--json"});
    Process first(command_path(), words, patient), second(command_path(), words, patient);
    const Ended a = first.finish(), b = second.finish();
    INFO(a.err << "\n--- the other machine\n" << b.err);
    CHECK(a.code == 0);
    CHECK(b.code == 0);
    CHECK_THAT(a.err + b.err,
               contains(fmt::format("rank {} (cpu on ", rank)) && contains("was ended by signal 9") &&
                   contains("goes on after step") && contains("with 1 of 2 devices") &&
                   contains(fmt::format("without the ranks that are lost ({}), 1 go on ({})", rank, 1 - rank)));
    CHECK_THAT(a.out + b.out, contains("\"devices\": 1"));
    REQUIRE(std::filesystem::exists(out));
    CHECK((weights_in(out) == weights_in(one)));
  }
}

TEST_CASE("train --nodes --min-ranks: more ranks than there are", "[cli][collective][nodes]") {
  if (!command_is_there() || !collective::has_gloo()) return;
  const Arguments words{"launch",      "--nodes", "2",  "--rendezvous", "127.0.0.1:" + free_port(), "--devices", "cpu",
                        "--min-ranks", "3",       "--", "true"};
  Process first(command_path(), words, {}), second(command_path(), words, {});
  for (const Ended& ended : {first.finish(), second.finish()}) {
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, contains("--min-ranks is 3, but there are 2 ranks"));
  }
}
