// Work in a copy of the process: what returns, throws, dies, leaves, or never ends.
#include "concord/core/trial.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "concord_test.hpp"

namespace concord::test {

using std::chrono::seconds;

TEST_CASE("work that ends well in a copy leaves this process as it was", "[core]") {
  int changed = 0;
  const Trial trial = try_in_copy(
      [&] {
        changed = 1;
        std::fputs("one\ntwo \n\n", stderr);
      },
      seconds(60));
  CHECK(trial.returned);
  CHECK(trial.end.empty());
  CHECK(trial.last_words == "two");
  CHECK(changed == 0);
  CHECK(try_in_copy([] { throw std::runtime_error("for the caller"); }, seconds(60)).returned);
}

TEST_CASE("work that ends its process says how", "[core]") {
  const Trial killed = try_in_copy([] { std::raise(SIGKILL); }, seconds(60));
  CHECK_FALSE(killed.returned);
  CHECK(killed.end == "Killed");
  CHECK(killed.last_words.empty());
  for (const int code : {0, 3}) {
    const Trial left = try_in_copy([&] { ::_exit(code); }, seconds(60));
    CHECK_FALSE(left.returned);
    CHECK(left.end == "exit code " + std::to_string(code));
  }
  const Trial silent = try_in_copy([] { std::this_thread::sleep_for(seconds(1000)); }, seconds(1));
  CHECK_FALSE(silent.returned);
  CHECK(silent.end == "no answer for 1 s");
}

TEST_CASE("what a trial starts and leaves behind keeps nobody waiting", "[core]") {
  const auto start = std::chrono::steady_clock::now();
  const Trial trial = try_in_copy(
      [] {
        std::fputs("started one\n", stderr);
        if (::fork() == 0) {  // holds standard error
          std::this_thread::sleep_for(seconds(20));
          ::_exit(0);
        }
      },
      seconds(60));
  CHECK(trial.returned);
  CHECK(trial.last_words == "started one");
  CHECK(std::chrono::steady_clock::now() - start < seconds(10));
}

TEST_CASE("a trial that closes its standard error is waited for, but not for ever", "[core]") {
  const auto close_and_sleep = [](int milliseconds) {
    ::close(STDERR_FILENO);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  CHECK(try_in_copy([&] { close_and_sleep(200); }, seconds(60)).returned);
  CHECK(try_in_copy([&] { close_and_sleep(100000); }, seconds(1)).end == "no answer for 1 s");
}

}  // namespace concord::test
