// compare(): equal devices agree to the bit, a wrong operator is named whether it runs by itself or fused, the devices
// of the machine agree, and bad input is refused.
#include "concord/compare/compare.hpp"

#include <algorithm>

#include "compare/wrong_device.hpp"
#include "concord/ops/fused.hpp"
#include "files.hpp"
#include "forwarding_device.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

const CompareOptions kOptions{.steps = 4, .batch = 10, .seed = 3};

WrongOperator named(std::string name) {
  return [name = std::move(name)](const Operator& op) { return op.name() == name; };
}

/// Computes every operator by itself that would be an epilogue of another.
class UnfusingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] bool supports_epilogue(const Operator&, std::span<const TensorSpec>, const TensorSpec&,
                                       const Expression&, std::span<const TensorSpec>, Precision) const override {
    return false;
  }
};

/// Where each device stands in the comparison.
enum Place : std::size_t { reference, same, wrong_activation, wrong_gradient, wrong_fusion, others };

/// One comparison for all the tests, since each device is measured for a second.
const Comparison& comparison() {
  static const Comparison result = [] {
    const DevicePtr& right = devices().front();
    std::vector<DevicePtr> list{right, right, wrong_device(right, "wrong activation", named("relu")),
                                wrong_device(right, "wrong gradient", named("relu_backward")),
                                wrong_device(right, "wrong fusion", [](const Operator& op) {
                                  return dynamic_cast<const ops::Fused*>(&op) != nullptr;
                                })};
    list.insert(list.end(), devices().begin() + 1, devices().end());
    nn::Sequential network = small_net();
    return compare(network, "small", loss::cross_entropy, optim::Adam{.lr = 0.01}, small_data(25), list, kOptions);
  }();
  return result;
}

}  // namespace

TEST_CASE("equal devices have equal losses and no diverging operator", "[compare]") {
  const std::vector<DeviceRun>& runs = comparison().runs;
  REQUIRE(runs.size() == Place::others + devices().size() - 1);
  CHECK(comparison().network == "small");
  CHECK(runs[Place::reference].losses.size() == 4);
  CHECK(runs[Place::same].losses == runs[Place::reference].losses);
  CHECK(runs[Place::same].largest_loss_deviation == 0);
  CHECK_FALSE(runs[Place::same].first_deviation);
  CHECK_FALSE(runs[Place::reference].first_deviation);
  CHECK(runs[Place::reference].checked_values > 0);  // its fused kernels against its own single ones
  CHECK(runs[Place::same].checked_values > runs[Place::reference].checked_values);
  for (const DeviceRun& run : runs) {
    INFO(run.device.name);
    CHECK(run.min_ms > 0);
    CHECK(run.min_ms <= run.median_ms);
    CHECK(run.median_ms <= run.max_ms);
    CHECK(run.samples_per_second == Approx(10 / run.median_ms * 1e3));
    CHECK(run.first_step_ms > 0);
    CHECK(run.memory_bytes > 0);
  }
}

TEST_CASE("the devices of this machine agree", "[compare]") {
  Comparison right = comparison();
  right.runs.erase(right.runs.begin() + Place::wrong_activation, right.runs.begin() + Place::others);
  for (const DeviceRun& run : right.runs) {
    INFO(run.device.name);
    CHECK_FALSE(run.first_deviation);
    CHECK(run.largest_loss_deviation < 1e-3);
  }
  CHECK(right.agrees());
}

TEST_CASE("a wrong operator is named with its node, kernel and shapes", "[compare]") {
  const DeviceRun& run = comparison().runs[Place::wrong_activation];
  REQUIRE(run.first_deviation);
  const Deviation& deviation = *run.first_deviation;
  CHECK(deviation.op == "relu");
  CHECK(deviation.node == "1/relu");
  CHECK(deviation.value == "1/relu");
  CHECK(deviation.shapes == "f32 [10, 16] -> f32 [10, 16]");
  CHECK_FALSE(deviation.kernel.empty());
  CHECK(deviation.pass == Pass::forward);
  CHECK(deviation.error > deviation.tolerance);
  CHECK(deviation.error < 10);
  CHECK(deviation.step == 0);
  CHECK_FALSE(comparison().agrees());
}

TEST_CASE("a wrong operator of the backward pass is told as one", "[compare]") {
  const DeviceRun& run = comparison().runs[Place::wrong_gradient];
  REQUIRE(run.first_deviation);
  CHECK(run.first_deviation->op == "relu_backward");
  CHECK(run.first_deviation->pass == Pass::gradient);
  CHECK_THAT(run.first_deviation->node, contains("grad/"));
}

TEST_CASE("a kernel that is wrong only where operators are fused is found, and its losses part", "[compare]") {
  const DeviceRun& run = comparison().runs[Place::wrong_fusion];
  REQUIRE(run.first_deviation);
  CHECK_THAT(run.first_deviation->op, contains("matmul+"));
  CHECK(run.losses != comparison().runs[Place::reference].losses);
  CHECK(run.largest_loss_deviation > 1e-3);
  CHECK(run.largest_at_step >= 1);
  CHECK(run.largest_at_step <= 4);
}

TEST_CASE("what a step runs is checked between the steps as often as was asked for", "[compare]") {
  const DevicePtr& right = devices().front();
  const std::vector<DevicePtr> list{right, wrong_device(right, "wrong fusion", [](const Operator& op) {
                                      return dynamic_cast<const ops::Fused*>(&op) != nullptr;
                                    })};
  const auto compared = [&](std::int64_t every) {
    nn::Sequential network = small_net();
    CompareOptions options = kOptions;
    options.seconds = 0.01;
    options.check_every = every;
    return compare(network, "small", loss::cross_entropy, optim::Adam{.lr = 0.01}, small_data(25), list, options);
  };
  const Comparison ends = compared(0), each = compared(1), second = compared(2);
  CHECK(ends.check_cost.all_seconds.size() == 2);
  CHECK(ends.check_cost.step_seconds.empty());
  CHECK(each.check_cost.step_seconds.size() == 3);
  CHECK(second.check_cost.step_seconds.size() == 1);
  CHECK(each.runs[1].checked_values > second.runs[1].checked_values);
  CHECK(second.runs[1].checked_values > ends.runs[1].checked_values);
  for (std::size_t d : {0U, 1U}) CHECK(each.runs[d].losses == ends.runs[d].losses);  // a check changes nothing
  for (const Comparison* one : {&ends, &each}) CHECK_THAT(one->runs[1].first_deviation->op, contains("matmul+"));
  CHECK_FALSE(each.runs[0].first_deviation);
}

TEST_CASE("devices that are checked side by side get what they get one after another", "[compare]") {
  const std::string second = devices().back()->info().id;
  const auto relu = named("relu_backward");
  const auto compared = [&](const std::string& id, const std::string& wrong_id) {
    const std::vector<DevicePtr> list{
        devices().front(), std::make_shared<OtherDevice>(Device::open(second), id),
        std::make_shared<OtherDevice>(wrong_device(Device::open(second), "wrong gradient", relu), wrong_id)};
    nn::Sequential network = small_net();
    CompareOptions options = kOptions;
    options.seconds = 0.01;
    options.check_every = 1;
    return compare(network, "small", loss::cross_entropy, optim::Adam{.lr = 0.01}, small_data(25), list, options);
  };
  const Comparison beside = compared("one", "two"), in_turn = compared("one", "one");
  for (std::size_t d = 0; d < 3; ++d) {
    const DeviceRun &one = beside.runs[d], &other = in_turn.runs[d];
    CHECK(one.losses == other.losses);
    CHECK(one.checked_values == other.checked_values);
    REQUIRE(one.operators.size() == other.operators.size());
    for (std::size_t i = 0; i < one.operators.size(); ++i) {
      CHECK(one.operators[i].node == other.operators[i].node);
      CHECK(one.operators[i].error == other.operators[i].error);
      CHECK(one.operators[i].tolerance == other.operators[i].tolerance);
    }
    REQUIRE(one.first_deviation.has_value() == (d == 2));
    CHECK(other.first_deviation.has_value() == (d == 2));
  }
  CHECK(beside.runs[2].first_deviation->op == "relu_backward");
  CHECK(in_turn.runs[2].first_deviation->op == "relu_backward");
}

TEST_CASE("between the steps only a device that fuses otherwise is held against operators by themselves", "[compare]") {
  const DevicePtr& right = devices().front();
  const auto checked_of_first = [&](const DevicePtr& second, std::int64_t every) {
    nn::Sequential network = small_net();
    CompareOptions options = kOptions;
    options.seconds = 0.01;
    options.check_every = every;
    const Comparison result = compare(network, "small", loss::cross_entropy, optim::Adam{.lr = 0.01}, small_data(25),
                                      std::vector<DevicePtr>{right, second}, options);
    for (const DeviceRun& run : result.runs) CHECK_FALSE(run.first_deviation);
    CHECK(result.runs[1].checked_values > result.runs[0].checked_values);
    return result.runs[0].checked_values;
  };
  CHECK(checked_of_first(right, 1) == checked_of_first(right, 0));
  const auto plain = std::make_shared<UnfusingDevice>(right);
  CHECK(checked_of_first(plain, 1) > checked_of_first(plain, 0));
}

TEST_CASE("a training that overflows is told as such, and blames no operator", "[compare]") {
  nn::Sequential network = small_net();
  CompareOptions options = kOptions;
  options.seconds = 0.01;
  options.check_every = 1;
  const Comparison result =
      compare(network, "small", loss::cross_entropy, optim::Sgd{.lr = 1e19}, small_data(25), devices(), options);
  for (const DeviceRun& run : result.runs) {
    INFO(run.device.id);
    CHECK_FALSE(run.first_deviation);
  }
  CHECK_FALSE(result.agrees());
  CHECK_THAT(result.disagreement(), contains("not finite"));
}

TEST_CASE("compare refuses what it cannot compare", "[compare]") {
  nn::Sequential network = small_net();
  const std::vector<DevicePtr> one{devices().front()};
  const auto refusal = [&](const Dataset& data, std::span<const DevicePtr> list, const CompareOptions& options) {
    return message_of<ArgumentError>(
        [&] { (void)compare(network, "small", loss::cross_entropy, optim::Sgd{}, data, list, options); });
  };
  CHECK_THAT(refusal(small_data(), {}, kOptions), contains("no device"));
  CHECK_THAT(refusal(small_data(), std::vector<DevicePtr>{one[0], nullptr}, kOptions), contains("is null"));
  CHECK_THAT(refusal(small_data(), one, {.steps = 0}), contains("steps must be at least 1, got 0"));
  CHECK_THAT(refusal(small_data(), one, {.steps = -5}), contains("got -5"));
  CHECK_THAT(refusal(small_data(), one, {.batch = 0}), contains("batch must be at least 1, got 0"));
  CHECK_THAT(refusal(small_data(), one, {.seconds = -1}), contains("seconds must be positive, got -1"));
  Dataset wrong = small_data();
  wrong.labels = wrong.labels.clone();
  wrong.labels.values<std::int32_t>()[1] = wrong.classes;
  CHECK_THAT(refusal(wrong, one, kOptions), contains("of sample 1 is outside"));
  wrong.labels = Tensor(DType::i32, {1});
  CHECK_THROWS_AS(compare(network, "small", loss::cross_entropy, optim::Sgd{}, wrong, one, kOptions), ShapeError);
  wrong.features = Tensor(DType::f32, {0, 3});
  wrong.labels = Tensor(DType::i32, {0});
  CHECK_THAT(refusal(wrong, one, kOptions), contains("empty"));
  const Dataset images = data::synthetic(Shape{1, 8, 8}, 3, 20);
  CHECK_THROWS_AS(compare(network, "small", loss::cross_entropy, optim::Sgd{}, images, one, kOptions), ShapeError);
  Dataset more_classes = small_data();
  more_classes.classes = 12;
  CHECK_THAT(refusal(more_classes, one, kOptions), contains("labels up to 11, but the network has"));
}

}  // namespace concord::test
