#include "concord/core/nearest_name.hpp"

#include <array>

#include "concord_test.hpp"

using namespace concord;

TEST_CASE("a misspelt name is told with the one that was meant", "[core]") {
  const std::array<std::string, 4> names{"train", "tune", "--epochs", "evaluate"};
  CHECK(nearest_name("trian", names) == "train");
  CHECK(nearest_name("tune", names) == "tune");
  CHECK(nearest_name("--epoch", names) == "--epochs");
  CHECK(nearest_name("evalaute", names) == "evaluate");
  CHECK(nearest_name("ran", names) == std::nullopt);
  CHECK(nearest_name("", names) == std::nullopt);
  CHECK(nearest_name("x", {}) == std::nullopt);
}
