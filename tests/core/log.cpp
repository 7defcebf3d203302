// The log is silent until asked, and filters by level.
#include "concord/core/log.hpp"

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("the log hands messages of the asked levels to the callback", "[core]") {
  std::vector<std::string> heard;
  set_log([&](LogLevel level, std::string_view message) {
    heard.push_back(std::string(name_of(level)) + " " + std::string(message));
  });
  log(LogLevel::debug, "one");
  log(LogLevel::info, "two");
  log(LogLevel::error, "three");
  CHECK(heard == std::vector<std::string>{"info two", "error three"});
  CHECK(!log_enabled(LogLevel::debug));
  set_log({});
  log(LogLevel::error, "four");
  CHECK(heard.size() == 2);
  CHECK(!log_enabled(LogLevel::error));
}

}  // namespace concord::test
