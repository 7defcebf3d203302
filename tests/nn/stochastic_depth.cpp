// StochasticDepth: what is dropped together, how often, and what is left.
#include "concord/nn/stochastic_depth.hpp"

#include <set>

#include "concord_test.hpp"

namespace concord::test {
namespace {

using Mode = nn::StochasticDepth::Mode;

/// Each sample's value after the layer; every element of x is 1.
std::vector<float> factors(const DevicePtr& device, float p, Mode mode, bool training, std::int64_t samples,
                           std::uint64_t seed = 3) {
  Graph graph;
  graph.set_training(training);
  const Value x = graph.input("x", {DType::f32, {samples, 2, 3}});
  const Value y = nn::StochasticDepth{p, mode}(x);
  const Value output = y + 0.0F;
  Program program = compile(graph, {{output}}, std::make_shared<Variables>(device, seed));
  program.write(
      "x", Tensor::of<float>(Shape{samples, 2, 3}, std::vector<float>(static_cast<std::size_t>(samples) * 6, 1.0F)));
  program.run();
  const Tensor result = program.read(output);
  std::vector<float> values;
  for (std::size_t i = 0; i < result.values<float>().size(); i += 6) {
    const auto sample = result.values<float>().subspan(i, 6);
    CHECK(std::set<float>(sample.begin(), sample.end()).size() == 1);
    values.push_back(sample[0]);
  }
  return values;
}

TEST_CASE("stochastic depth drops whole samples, or the batch", "[nn][layers]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<float> rows = factors(device, 0.25F, Mode::row, true, 2000);
    CHECK(std::set<float>(rows.begin(), rows.end()) == std::set<float>{0.0F, 1.0F / 0.75F});
    // Four standard deviations of the share.
    CHECK(std::ranges::count(rows, 0.0F) == Approx(500).margin(80));
    std::set<float> seen;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const std::vector<float> batch = factors(device, 0.5F, Mode::batch, true, 9, seed);
      CHECK(std::set<float>(batch.begin(), batch.end()).size() == 1);
      seen.insert(batch[0]);
    }
    CHECK(seen == std::set<float>{0.0F, 2.0F});
    CHECK(factors(device, 1, Mode::row, true, 3) == std::vector<float>(3, 0.0F));
    CHECK(factors(device, 0, Mode::row, true, 3) == std::vector<float>(3, 1.0F));
    CHECK(factors(device, 0.9F, Mode::row, false, 3) == std::vector<float>(3, 1.0F));
  }
}

TEST_CASE("stochastic depth refuses what is no probability", "[nn][layers]") {
  CHECK_THROWS_AS(nn::StochasticDepth{1.5F}, ArgumentError);
  CHECK_THROWS_AS(nn::StochasticDepth{-0.1F}, ArgumentError);
}

}  // namespace
}  // namespace concord::test
