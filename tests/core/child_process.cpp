// Child processes: programs that are talked to, programs that report, and work in a copy of this process. They end
// well, fail, fall silent, or are missing.
#include "concord/core/child_process.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "concord/core/error.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

using std::chrono::seconds;

ChildEnd end_of(const std::function<void()>& work, seconds patience = seconds(60)) {
  return ChildProcess::copy(work).finish(patience);
}

ChildProcess bash(const std::string& line) {
  const auto variable = [](int channel) { return "CHANNEL=" + std::to_string(channel); };
  return ChildProcess::reporting("/bin/bash", {"-c", line}, variable);
}

}  // namespace

TEST_CASE("what is sent to a child process comes back", "[core]") {
  ChildProcess cat = ChildProcess::serving("/bin/cat", {});
  const std::string text(100'000, 'x');
  std::string back(text.size(), ' ');
  for (std::size_t at = 0; at < text.size(); at += 10'000) {
    REQUIRE(cat.send(std::string_view(text).substr(at, 10'000)));
    REQUIRE(cat.receive(std::span(back).subspan(at, 10'000), seconds(60)));
  }
  CHECK(back == text);
}

TEST_CASE("a child process that is missing, gone or silent is noticed", "[core]") {
  CHECK_THROWS_AS(ChildProcess::serving("/no such program", {}), IoError);
  std::array<char, 1> answer{};
  ChildProcess gone = ChildProcess::serving("/bin/true", {});
  CHECK_FALSE(gone.receive(answer, seconds(60)));
  CHECK_FALSE(gone.send("x"));
  ChildProcess silent = ChildProcess::serving("/bin/sleep", {"1000"});
  CHECK(silent.send("x"));
  CHECK_FALSE(silent.receive(answer, seconds(1)));
}

TEST_CASE("a program reports beside its input and output", "[core]") {
  ChildProcess program = bash("echo one >&$CHANNEL; echo two >&$CHANNEL; exit 3");
  CHECK(program.receive_report() == "one\ntwo\n");
  const ChildEnd end = program.finish();
  CHECK(end.failed);
  CHECK(end.how == "exit code 3");
  CHECK(end.output.empty());
  const ChildEnd well = bash("echo done >&$CHANNEL").finish(seconds(60));
  CHECK_FALSE(well.failed);
  CHECK(well.how.empty());
  CHECK(well.output == "done\n");
}

TEST_CASE("a program starts with no signal blocked, whatever the thread blocks that starts it", "[core]") {
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  ChildProcess child = bash("grep SigBlk /proc/self/status >&$CHANNEL");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(child.receive_report() == "SigBlk:\t0000000000000000\n");
}

TEST_CASE("a copy of this process hangs up and is ended by its parent", "[core]") {
  ChildProcess copy = ChildProcess::copy([] {
    const ParentChannel parent(STDERR_FILENO);
    if (parent.send("all of it")) parent.hang_up();
  });
  CHECK(copy.receive_report() == "all of it");
  const auto start = std::chrono::steady_clock::now();
  { const ChildProcess last = std::move(copy); }
  CHECK(std::chrono::steady_clock::now() - start < seconds(30));
}

TEST_CASE("work that ends well in a copy leaves this process as it was", "[core]") {
  int changed = 0;
  const ChildEnd end = end_of([&] {
    changed = 1;
    std::fputs("one\ntwo \n\n", stderr);
  });
  CHECK_FALSE(end.failed);
  CHECK(end.how.empty());
  CHECK(end.output == "one\ntwo \n\n");
  CHECK(changed == 0);
  CHECK_FALSE(end_of([] { throw std::runtime_error("for the caller"); }).failed);
}

TEST_CASE("work that ends its process says how", "[core]") {
  const ChildEnd killed = end_of([] { std::raise(SIGKILL); });
  CHECK(killed.failed);
  CHECK(killed.how == "Killed");
  CHECK(killed.output.empty());
  for (const int code : {0, 3}) {
    const ChildEnd left = end_of([&] { ::_exit(code); });
    CHECK(left.failed);
    CHECK(left.how == "exit code " + std::to_string(code));
  }
  const ChildEnd silent = end_of([] { std::this_thread::sleep_for(seconds(1000)); }, seconds(1));
  CHECK(silent.failed);
  CHECK(silent.how == "no answer in 1 s");
}

TEST_CASE("what a copy starts and leaves behind keeps nobody waiting", "[core]") {
  const auto start = std::chrono::steady_clock::now();
  const ChildEnd end = end_of([] {
    std::fputs("started one\n", stderr);
    if (::fork() == 0) {  // holds standard error
      std::this_thread::sleep_for(seconds(20));
      ::_exit(0);
    }
  });
  CHECK_FALSE(end.failed);
  CHECK(end.output == "started one\n");
  CHECK(std::chrono::steady_clock::now() - start < seconds(10));
}

TEST_CASE("a copy that closes its standard error is waited for, but not for ever", "[core]") {
  const auto close_and_sleep = [](int milliseconds) {
    ::close(STDERR_FILENO);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  CHECK_FALSE(end_of([&] { close_and_sleep(200); }).failed);
  CHECK(end_of([&] { close_and_sleep(100000); }, seconds(1)).how == "no answer in 1 s");
}

}  // namespace concord::test
