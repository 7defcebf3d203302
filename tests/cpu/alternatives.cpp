// What oneDNN's post-operations do is checked, and what is found wrong is not used.
#include "concord/compare/cases/alternative_check.hpp"
#include "concord/core/log.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "files.hpp"
#include "run_kernel.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

std::size_t launches_of(const DevicePtr& device) {
  Graph graph;
  const Value a = graph.input("a", {DType::f32, {8, 16}}), b = graph.input("b", {DType::f32, {16, 8}});
  const std::vector<Value> outputs{matmul(a, b) * 0.5F + 0.25F};
  return compile(graph, outputs, std::make_shared<Variables>(device, 1)).launches();
}

}  // namespace

TEST_CASE("the post-operations of the CPU are right, and off once they are disabled", "[cpu]") {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  const Setting setting("CONCORD_CACHE_DIR", folder.path().string());
  const DevicePtr device = Device::open("cpu");
  KernelAlternatives* const alternatives = device->alternatives();
  REQUIRE(alternatives != nullptr);
  REQUIRE(alternatives->list().size() == 2);
  for (const KernelAlternative& alternative : alternatives->list()) {
    INFO(alternative.name);
    const AlternativeResult result = check_alternative(device, *alternatives, alternative.name);
    CHECK(result.was_taken);
    CHECK(result.alternative.reason.empty());
    CHECK(result.unexplained.empty());
  }
  CHECK(launches_of(device) == 1);
  alternatives->disable("product post-operations", "a test");
  CHECK(launches_of(device) == 2);
  alternatives->store();
  CHECK(std::filesystem::is_regular_file(alternatives->file()));
  set_log([](LogLevel, std::string_view) {}, LogLevel::warning);
  CHECK(launches_of(Device::open("cpu")) == 2);
  set_log({}, LogLevel::warning);
  CHECK(alternatives->forget() == 1);
  CHECK_FALSE(std::filesystem::exists(alternatives->file()));
  CHECK(launches_of(Device::open("cpu")) == 1);
  CHECK_THROWS_AS(alternatives->disable("another", "a test"), ArgumentError);
}

}  // namespace concord::test
