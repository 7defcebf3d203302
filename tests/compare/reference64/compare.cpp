// compare with Reference::float64: a wrong operator of the first device is found, and what has no reference is named.
#include "compare/wrong_device.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "train/small_training.hpp"

namespace concord::test {

TEST_CASE("with float64 a wrong operator of the first device is found, and right devices agree", "[compare]") {
  const DevicePtr right = devices().front();
  const std::vector<DevicePtr> list{
      wrong_device(right, "wrong", [](const Operator& op) { return op.name() == "relu"; }), right};
  nn::Sequential network = small_net();
  const Comparison result =
      compare(network, "small", loss::cross_entropy, optim::Adam{.lr = 0.01}, small_data(25), list,
              {.steps = 2, .batch = 10, .seed = 3, .seconds = 0.001, .reference = Reference::float64});
  REQUIRE(result.runs[0].first_deviation);
  CHECK(result.runs[0].first_deviation->node == "1/relu");
  CHECK_FALSE(result.runs[1].first_deviation);
  CHECK(result.runs[0].unreferenced == std::vector<std::string>{"advance_random"});  // of integers
  REQUIRE(result.runs[0].kept_case);
  const OperatorCase& kept = *result.runs[0].kept_case;
  CHECK(largest_difference(kept.expected[0], kept.results[0]) == Approx(result.runs[0].first_deviation->error));
  CHECK_THAT(result.table(), contains("reference float64"));
}

TEST_CASE("with float64 huge results beside NaN are found", "[compare]") {
  const DevicePtr right = devices().front();
  const std::vector<DevicePtr> list{
      wrong_device(
          right, "wrong", [](const Operator& op) { return op.name() == "relu"; }, std::vector<float>{3e38F, NAN}),
      right};
  nn::Sequential network = small_net();
  const Comparison result = compare(network, "small", loss::cross_entropy, optim::Sgd{}, small_data(25), list,
                                    {.steps = 1, .batch = 10, .seconds = 0.001, .reference = Reference::float64});
  REQUIRE(result.runs[0].first_deviation);
  CHECK(result.runs[0].first_deviation->node == "1/relu");
  CHECK(result.runs[0].first_deviation->tolerance < 1);
}

TEST_CASE("with float64 a case has whole numbers as well", "[compare]") {
  const DevicePtr right = devices().front();
  const std::vector<DevicePtr> list{
      right, wrong_device(
                 right, "wrong", [](const Operator& op) { return op.name() == "max_pool"; }, 77)};
  nn::Sequential network{nn::Conv2d{1, 4, 3, {.padding = 1}}, nn::MaxPool2d{2}, nn::Flatten{}, nn::Linear{36, 3}};
  const Comparison result = compare(
      network, "small", loss::cross_entropy, optim::Sgd{.lr = 0.01}, data::synthetic(Shape{1, 6, 6}, 3, 20), list,
      {.steps = 1, .batch = 10, .seconds = 0.001, .reference = Reference::float64, .case_node = "1/max_pool"});
  CHECK_FALSE(result.runs[0].first_deviation);
  REQUIRE(result.runs[1].first_deviation);
  CHECK(result.runs[1].first_deviation->node == "1/max_pool");
  REQUIRE(result.runs[0].kept_case);
  const OperatorCase& kept = *result.runs[0].kept_case;
  REQUIRE(kept.expected.size() == 2);
  CHECK(kept.expected[1].dtype() == DType::i32);
  CHECK(largest_difference(kept.expected[1], kept.results[1]) == 0);
}

TEST_CASE("operators without a float64 reference are named", "[compare]") {
  nn::Sequential network{nn::Linear{6, 16}, nn::Sigmoid{}, nn::Linear{16, 3}};
  const auto with_noise = [](Value output, Value labels) {
    return loss::cross_entropy(output + random_uniform(output.graph(), output.shape()), labels);
  };
  const std::vector<DevicePtr> one{devices().front()};
  const Comparison result = compare(network, "small", with_noise, optim::Sgd{}, small_data(25), one,
                                    {.steps = 1, .batch = 10, .seconds = 0.001, .reference = Reference::float64});
  // The second is a formula of integers.
  CHECK(result.runs[0].unreferenced == std::vector<std::string>{"random_uniform", "advance_random"});
  CHECK_THAT(result.table(),
             contains("no float64 reference, compared with the first device: random_uniform, advance_random"));
  CHECK_THAT(result.html(), contains("No float64 reference") && contains("<code>random_uniform</code>"));
}

}  // namespace concord::test
