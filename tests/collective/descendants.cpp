// What a rank has started, as its launcher finds it.
#include "concord/collective/descendants.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "cli/process.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;
using collective::descendants_of;

TEST_CASE("processes are found by the environment that they have from their rank", "[collective]") {
  const std::string mark = std::to_string(::getpid());
  const std::vector<std::string> marks{"CONCORD_TEST_A=" + mark, "CONCORD_TEST_B=" + mark};
  // One of the three gives the next one another environment, and is found with it as long as it lives.
  const std::string script = "sleep 60 & (CONCORD_TEST_B=else sh -c 'sleep 60; :'; :) & wait";
  Process shell("/bin/sh", {"-c", script}, {{"CONCORD_TEST_A", mark}, {"CONCORD_TEST_B", mark}});
  std::vector<pid_t> found;
  CHECK(wait_until([&] {
    found = descendants_of(0, marks);
    return found.size() == 5;  // the shell, sleep; the other shells, their sleep
  }));
  CHECK(descendants_of(0, {marks[0], marks[1], "CONCORD_TEST_C=" + mark}).empty());
  CHECK(descendants_of(0, {}).empty());
  const std::vector<pid_t> own = descendants_of(::getpid(), {});
  for (const pid_t one : found) CHECK(std::ranges::find(own, one) != own.end());
  for (const pid_t one : found) ::kill(one, SIGKILL);
  static_cast<void>(shell.finish());
  CHECK(descendants_of(0, marks).empty());
}
