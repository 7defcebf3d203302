// reason(): libraries' messages without their marks.
#include "concord/core/reason.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "concord_test.hpp"

namespace concord::test {
namespace {

std::string reason_of(auto&& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return reason(error);
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("what a library says stands in a sentence of ours without the library's mark", "[core]") {
  const std::string json = reason_of([] { static_cast<void>(nlohmann::json::parse("{\"a\": nope}").size()); });
  CHECK_THAT(json, contains("syntax error") && !contains("[json") && !contains("exception"));
  const std::string file = reason_of([] { (void)std::filesystem::file_size("/nonexistent/file"); });
  CHECK(file == "/nonexistent/file: No such file or directory");
  CHECK(reason_of([] { throw std::runtime_error("it is full"); }) == "it is full");
}

}  // namespace concord::test
