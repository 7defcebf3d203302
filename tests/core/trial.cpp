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

}  // namespace concord::test
