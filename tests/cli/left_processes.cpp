// What ranks of `concord launch` leave running when they end.
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "cli/process.hpp"
#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Environment two_devices(const std::string& deadline) {
  return {{"POCL_DEVICES", "pthread pthread"}, {"CONCORD_DEADLINE", deadline}};
}

bool are_two_devices_there() {
  if (contains(run_command({"devices", "--json"}, two_devices("60")).out, "\"opencl:1\"")) return true;
  WARN("skipped: there is no PoCL with two devices");
  return false;
}

/// How a launch ended whose rank 1 starts a process that lasts, and then does `deed`; and that process.
class Left {
 public:
  Left(const std::string& deed, const std::string& deadline) {
    const std::string number = folder_ / "number", late = folder_ / "late";
    const std::string script = fmt::format(
        "[ $RANK = 0 ] && exit 0; (sleep 30; echo >{}) & echo $! >{}; echo a word >&2; {}", late, number, deed);
    ended_ = run_command({"launch", "--devices", "opencl:0,opencl:1", "--", "sh", "-c", script}, two_devices(deadline));
    process_ = std::stoi("0" + content_of(number));
  }
  [[nodiscard]] const Ended& ended() const { return ended_; }
  [[nodiscard]] pid_t process() const { return process_; }
  /// Not as one that has ended and that nobody has waited for.
  [[nodiscard]] bool is_running() const {
    const std::filesystem::path file = fmt::format("/proc/{}/stat", process_);
    return std::filesystem::exists(file) && !contains(std::string_view(content_of(file)), std::string_view(") Z "));
  }
  [[nodiscard]] bool was_ended() const { return !is_running() && !std::filesystem::exists(folder_ / "late"); }

 private:
  TemporaryFolder folder_;
  Ended ended_;
  pid_t process_ = 0;
};

}  // namespace

TEST_CASE("launch does not wait for what a rank has left running", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const Left left("exit 0", "60");
  CHECK(left.ended().code == 0);
  CHECK_THAT(left.ended().err, contains("[rank 1] a word\n"));
  REQUIRE(left.is_running());
  ::kill(left.process(), SIGKILL);
}

TEST_CASE("launch ends what a failed rank has left running, after what it has printed", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const Left left("exit 3", "60");
  CHECK(left.ended().code == 1);
  CHECK(left.ended().err == "[rank 1] a word\nconcord: rank 1 (opencl:1) ended with exit code 3\n");
  CHECK(left.was_ended());
}

TEST_CASE("a rank that is killed for standing still goes with what it has started", "[cli][collective]") {
  if (!command_is_there() || !are_two_devices_there()) return;
  const Left left("kill -STOP $$", "1");
  CHECK(left.ended().code == 1);
  CHECK_THAT(left.ended().err, contains("concord: rank 1 (opencl:1) was ended by signal 9"));
  CHECK(left.was_ended());
}

TEST_CASE("a signal to launch reaches a program behind a script, which has time to end", "[cli][collective]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string program = folder / "program", done = folder / "done";
  write_file(program, fmt::format("trap 'touch {}; exit' TERM\necho up >&2\n"
                                  "for i in $(seq 600); do sleep 0.1; done\n",
                                  done));
  Process process(command_path(),
                  {"launch", "--devices", cheap_device(), "--", "sh", "-c", "sh " + program + " & wait"});
  REQUIRE(process.wait_for_error_text("up"));
  process.send(SIGTERM);
  const Ended ended = process.finish();
  CHECK(ended.code == 130);
  CHECK(std::filesystem::exists(done));
}
