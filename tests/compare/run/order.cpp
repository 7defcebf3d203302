// The order of the operators in a report, and which case of a node is kept.
#include "compare/wrong_device.hpp"
#include "concord/compare/report/outputs.hpp"
#include "concord/compare/run/deviation.hpp"
#include "files.hpp"
#include "forwarding_device.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

/// What it reads is said to come later, as on devices that compute beside the host.
class LateDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] EventPtr read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    struct Done final : Event {
      void wait() override {}
    };
    read(src, offset, bytes);
    return std::make_shared<Done>();
  }
};

Comparison compared(const std::vector<DevicePtr>& list, const CompareOptions& options) {
  nn::Sequential network = small_net();
  return compare(network, "small", loss::cross_entropy, optim::Sgd{}, small_data(25), list, options);
}

OperatorCase case_of(const std::string& device, float result) {
  return {.node = "n",
          .op = "relu",
          .attributes = {},
          .device = device,
          .kernel = "k",
          .outputs = {"y"},
          .expected = {Tensor::of<float>({1}, std::vector<float>{1})},
          .results = {Tensor::of<float>({1}, std::vector<float>{result})},
          .tolerances = {0.25}};
}

/// The device of the case that is written, of devices whose results are these.
std::string written(const std::vector<float>& results) {
  const TemporaryFolder folder;
  Comparison comparison{"small", {}, {}};
  for (const float result : results) {
    comparison.runs.emplace_back();
    comparison.runs.back().kept_case = case_of(std::to_string(comparison.runs.size() - 1), result);
  }
  const CompareOutputs outputs{.case_file = (folder / "case.safetensors").string()};
  outputs.write_files(comparison, {});
  return read_case(outputs.case_file).device;
}

}  // namespace

TEST_CASE("operators are reported in the order of execution, however late a device has their results", "[compare]") {
  const CompareOptions options{.steps = 1, .batch = 10, .seconds = 0.001, .reference = Reference::float64};
  const auto nodes = [&](const DevicePtr& device) {
    std::vector<std::string> names;
    const Comparison comparison = compared({device}, options);
    for (const Deviation& one : comparison.runs[0].operators) {
      if (one.form == Form::alone) names.push_back(one.node);
    }
    return names;
  };
  const std::vector<std::string> in_order = nodes(devices().front());
  CHECK(std::ranges::find(in_order, "1/relu") < std::ranges::find(in_order, "cross_entropy"));
  CHECK(nodes(std::make_shared<LateDevice>(devices().front())) == in_order);
}

TEST_CASE("the case of a node that is asked for is one that diverges, where one does", "[compare]") {
  CHECK(written({1, 1, 2}) == "2");
  CHECK(written({2, 1, 1}) == "0");
  CHECK(written({1, 1, 1}) == "1");
  CHECK(written({2, 2, 2}) == "1");

  int launches = 0;
  const auto later = [&](float) { return ++launches > 1 ? std::optional(77.0F) : std::nullopt; };
  const DevicePtr other = wrong_device(
      devices().front(), "wrong later", [](const Operator& op) { return op.name() == "relu"; }, WrongNumber(later));
  const Comparison result =
      compared({devices().front(), other}, {.steps = 1, .batch = 10, .seconds = 0.001, .case_node = "1/relu"});
  REQUIRE(result.runs[1].first_deviation);
  REQUIRE(result.runs[1].kept_case);
  CHECK(diverges(*result.runs[1].kept_case));
}

}  // namespace concord::test
