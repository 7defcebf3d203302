// A step of several ranks: what each finds of its own last gradients decides for all.
#include <algorithm>
#include <optional>
#include <set>

#include "concord/optim/minimize.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// One of two ranks that have the same batch, and more than 16 MiB of gradients.
class Rank {
 public:
  explicit Rank(const DevicePtr& device) : variables_(std::make_shared<Variables>(device, 5)) {
    const Value x = graph_.input("x", {DType::f32, Shape{4, 6}});
    const Value y = net_(x), first = graph_.find("0.weight");
    // Its gradient is NaN where a weight is 0.
    const Value loss = mean(square(y)) + sum(sqrt(square(first)));
    optim::minimize(loss, optim::Sgd{.lr = 0.1}, {.ranks = 2});
    before_.emplace(compile(graph_, {}, variables_, {.part = RunPart::before_exchange}));
    after_.emplace(compile(graph_, {}, variables_, {.part = RunPart::after_exchange}));
    Tensor batch(DType::f32, Shape{4, 6});
    std::ranges::fill(batch.values<float>(), 0.5F);
    before_->write("x", batch);
  }

  /// What is exchanged, in order.
  [[nodiscard]] std::vector<std::string> exchanged() const {
    std::vector<std::string> names;
    for (const Value& variable : graph_.exchanged()) names.push_back(variable.name());
    return names;
  }
  /// Makes the first part of the step, and the sums of this rank and another one, which has found `bad`.
  void run_before(float bad = 0) {
    before_->run();
    for (const std::string& name : exchanged()) {
      Tensor sum = variables_->read(name);
      for (float& number : sum.values<float>()) number += name == optim::kExchangedBad ? bad : number;
      variables_->write(name, sum);
    }
  }
  void run_after() { after_->run(); }
  [[nodiscard]] Variables& variables() { return *variables_; }
  [[nodiscard]] float number(const std::string& name) { return variables_->read(name).values<float>()[0]; }

 private:
  nn::Sequential net_{nn::Linear{6, 16}, nn::Linear{16, 2100}, nn::Linear{2100, 2100}, nn::Linear{2100, 1}};
  Graph graph_;
  VariablesPtr variables_;
  std::optional<Program> before_, after_;
};

}  // namespace

TEST_CASE("the gradients of the first parameters are exchanged behind the word whether they are finite", "[optim]") {
  const std::vector<std::string> names = Rank(devices().front()).exchanged();
  const auto bad = std::ranges::find(names, optim::kExchangedBad);
  REQUIRE(bad != names.end());
  const std::set<std::string> last(names.begin(), bad);
  CHECK(last == std::set<std::string>{optim::kExchangedNumbers, "exchange.0.weight", "exchange.0.bias",
                                      "exchange.1.weight", "exchange.1.bias", "exchange.2.weight"});
}

TEST_CASE("last gradients of one rank that are not finite stop the update of all", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Rank rank(device);
    const auto before = rank.variables().read("3.weight");
    rank.run_before();
    CHECK(rank.number(optim::kExchangedBad) == 0);
    rank.run_after();
    CHECK(rank.number(optim::kOk) == 1);
    const Tensor trained = rank.variables().read("3.weight");
    CHECK(difference(trained.values<float>(), before.values<float>()) > 0);

    rank.run_before(1);  // of the other rank
    rank.run_after();
    CHECK(rank.number(optim::kOk) == 0);
    CHECK(difference(rank.variables().read("3.weight").values<float>(), trained.values<float>()) == 0);
  }
}

TEST_CASE("a rank counts itself where its own last gradients are not finite", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Rank rank(device);
    Tensor weight = rank.variables().read("0.weight");
    weight.values<float>()[7] = 0;
    rank.variables().write("0.weight", weight);
    rank.run_before();
    CHECK(rank.number(optim::kExchangedBad) == 1);
    rank.run_after();
    CHECK(rank.number(optim::kOk) == 0);
    CHECK(difference(rank.variables().read("0.weight").values<float>(), weight.values<float>()) == 0);
  }
}
