// Talking to another program: echoes, programs that are missing, end early, or say nothing.
#include "concord/core/child_process.hpp"

#include "concord_test.hpp"

namespace concord::test {

using std::chrono::seconds;

TEST_CASE("what is sent to a child process comes back", "[core]") {
  const auto cat = ChildProcess::start("/bin/cat", {});
  REQUIRE(cat != nullptr);
  const std::string text(100'000, 'x');
  std::string back(text.size(), ' ');
  for (std::size_t at = 0; at < text.size(); at += 10'000) {
    REQUIRE(cat->send(std::string_view(text).substr(at, 10'000)));
    REQUIRE(cat->receive(std::span(back).subspan(at, 10'000), seconds(60)));
  }
  CHECK(back == text);
}

TEST_CASE("a child process that is missing, gone or silent is noticed", "[core]") {
  CHECK(ChildProcess::start("/no such program", {}) == nullptr);
  std::array<char, 1> answer{};
  const auto gone = ChildProcess::start("/bin/true", {});
  REQUIRE(gone != nullptr);
  CHECK_FALSE(gone->receive(answer, seconds(60)));
  CHECK_FALSE(gone->send("x"));
  const auto silent = ChildProcess::start("/bin/sleep", {"1000"});
  REQUIRE(silent != nullptr);
  CHECK(silent->send("x"));
  CHECK_FALSE(silent->receive(answer, seconds(1)));
}

}  // namespace concord::test
