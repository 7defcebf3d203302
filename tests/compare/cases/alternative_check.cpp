// check_alternative where memory runs out, and find_fault where results are huge.
#include "concord/compare/cases/alternative_check.hpp"

#include <cmath>

#include "compare/wrong_device.hpp"
#include "concord/compare/cases/kernel_check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord_test.hpp"
#include "forwarding_device.hpp"

namespace concord::test {
namespace {

/// One alternative for products.
class OneAlternative final : public KernelAlternatives {
 public:
  [[nodiscard]] std::vector<KernelAlternative> list() const override { return {one_}; }
  void prefer(std::string_view name) override { preferred = name; }
  [[nodiscard]] std::int64_t uses(std::string_view) const override { return 0; }
  void disable(std::string_view, std::string reason) override { one_.reason = std::move(reason); }
  [[nodiscard]] std::filesystem::path file() const override { return {}; }
  void store() const override {}
  std::size_t forget() override { return 0; }
  [[nodiscard]] const std::string& reason() const { return one_.reason; }
  std::string preferred;

 private:
  KernelAlternative one_{"product fast", "product", "of before"};
};

/// Each use of memory calls `fail`.
class FailingDevice final : public ForwardingDevice {
 public:
  explicit FailingDevice(std::function<void()> fail) : ForwardingDevice(devices().front()), fail_(std::move(fail)) {}
  [[nodiscard]] BufferPtr allocate(std::size_t bytes) override {
    fail_();
    return ForwardingDevice::allocate(bytes);
  }

 private:
  std::function<void()> fail_;
};

}  // namespace

TEST_CASE("memory that runs out is no fault of an alternative, which stays as it was", "[compare]") {
  OneAlternative alternatives;
  const auto check = [&](std::function<void()> fail) {
    return check_alternative(std::make_shared<FailingDevice>(std::move(fail)), alternatives, "product fast");
  };
  CHECK_THROWS_AS(check([] { throw OutOfMemory("the device is full"); }), OutOfMemory);
  CHECK(alternatives.reason() == "of before");
  CHECK_THROWS(check([] { throw std::bad_alloc(); }));
  CHECK(alternatives.reason() == "of before");
  // Wrong with the alternative, and no memory to see whether it is without.
  CHECK_THROWS_AS(check([&] {
                    if (alternatives.reason().empty()) throw DeviceError("broken");
                    throw OutOfMemory("the device is full");
                  }),
                  OutOfMemory);
  CHECK(alternatives.reason() == "of before");
  CHECK(alternatives.preferred.empty());

  const AlternativeResult result = check([&] {
    if (alternatives.reason().empty()) throw DeviceError("broken");
  });
  CHECK(result.alternative.reason == "broken");
}

TEST_CASE("huge results beside NaN do not widen their own tolerance", "[compare]") {
  const DevicePtr device = wrong_device(
      devices().front(), "wrong", [](const Operator& op) { return op.name() == "relu"; },
      std::vector<float>{3e38F, NAN});
  Graph graph;
  const std::vector<Value> outputs{relu(graph.input("x", {DType::f32, {3}}))};
  const auto fault = find_fault(graph, outputs, {{"x", Tensor::of<float>({3}, std::vector<float>{1, -2, 3})}}, device,
                                Precision::fp32);
  REQUIRE(fault);
  CHECK(fault->op == "relu");
  CHECK(fault->tolerance == Approx(4e-5 * (3 + 0.03)));
}

}  // namespace concord::test
