// Comparing devices on a network with several inputs and losses.
#include "concord/compare/compare.hpp"
#include "train/two_towers.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("devices are compared on a network with several inputs and losses", "[compare]") {
  TwoTowers network;
  std::vector<DevicePtr> list{devices().front(), devices().back()};
  const Comparison comparison = compare(network, "two towers", two_losses(), optim::Adam{.lr = 0.01}, two_columns(20),
                                        list, {.steps = 3, .batch = 8, .seed = 5});
  INFO(comparison.table());
  CHECK(comparison.agrees());
  CHECK(comparison.checked_values() > 20);
  CHECK_THAT(comparison.json(JsonDetail::operators), contains("number/"));
}
