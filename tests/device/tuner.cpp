// tune_within(): the order of products, the budget, and failures.
#include "concord/device/tuner.hpp"

#include "concord_test.hpp"

namespace concord::test {
namespace {

/// Remembers what it was asked; "broken" does not fit into memory.
class FakeTuner final : public Tuner {
 public:
  [[nodiscard]] std::vector<TunableProduct> products_of(const std::function<void()>& prepare) override {
    prepare();
    return {};
  }
  [[nodiscard]] TunedProduct tune(const std::string& key, double seconds) override {
    asked.push_back(key);
    budgets.push_back(seconds);
    if (key == "broken") throw OutOfMemory("too large");
    TunedProduct result;
    result.best = key;
    return result;
  }
  std::filesystem::path store(const std::filesystem::path& file) override { return file; }

  std::vector<std::string> asked;
  std::vector<double> budgets;
};

const std::vector<TunableProduct> kProducts{
    {"small", 10, 1, false}, {"large", 100, 1, false}, {"often", 10, 50, false}, {"broken", 10, 5, false}};

}  // namespace

TEST_CASE("products that take most are tuned first, and one that fails does not end it", "[device]") {
  FakeTuner tuner;
  std::vector<std::string> done, failed;
  const auto left = tune_within(tuner, kProducts, 1000,
                                [&](const TunableProduct& product, const TunedProduct& result, const std::string& why) {
                                  if (why.empty()) CHECK(result.best == product.key);
                                  (why.empty() ? done : failed).push_back(product.key + why);
                                });
  CHECK(left.empty());
  CHECK(tuner.asked == std::vector<std::string>{"often", "large", "broken", "small"});
  CHECK(done == std::vector<std::string>{"often", "large", "small"});
  CHECK(failed == std::vector<std::string>{"brokentoo large"});
  for (const double budget : tuner.budgets) CHECK((budget > 0 && budget <= 1000));
}

TEST_CASE("without time every product is left", "[device]") {
  FakeTuner tuner;
  const auto left = tune_within(tuner, kProducts, 0, [](const auto&, const auto&, const auto&) { FAIL("no time"); });
  REQUIRE(left.size() == kProducts.size());
  CHECK(left.front().key == "often");
  CHECK(tuner.asked.empty());
}

}  // namespace concord::test
