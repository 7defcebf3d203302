// Work on a thread of its own.
#include "concord/train/background.hpp"

#include <stdexcept>

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("work in the background is done in its order, and its errors reach who waits", "[train]") {
  std::string done;
  train::Background background;
  std::future<void> first = background.add([&] { done += 'a'; });
  std::future<void> second = background.add([&] { throw std::runtime_error("no room"); });
  std::future<void> third = background.add([&] { done += 'c'; });
  third.get();
  CHECK(done == "ac");
  first.get();
  CHECK_THROWS_WITH(second.get(), "no room");
}
