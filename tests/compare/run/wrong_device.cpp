// The wrong device: a launch of a wrong operator is followed by a fill.
#include "compare/wrong_device.hpp"

#include <bit>

#include "forwarding_device.hpp"

namespace concord::test {
namespace {

/// What the first numbers become, by the right first one.
using WrongNumbers = std::function<std::vector<float>(float right)>;

class WrongLaunch final : public Launch {
 public:
  WrongLaunch(std::unique_ptr<Launch> right, Device& device, Operand result, WrongNumbers numbers)
      : right_(std::move(right)), device_(device), result_(result), numbers_(std::move(numbers)) {}
  void enqueue() override {
    right_->enqueue();
    float right = 0;
    device_.read(*result_.buffer, result_.offset, std::as_writable_bytes(std::span(&right, 1)));
    std::size_t offset = result_.offset;
    for (const float wrong : numbers_(right)) {
      device_.fill(*result_.buffer, offset, sizeof wrong, std::bit_cast<std::uint32_t>(wrong));
      offset += sizeof wrong;
    }
  }

 private:
  std::unique_ptr<Launch> right_;
  Device& device_;
  Operand result_;
  WrongNumbers numbers_;
};

class WrongKernel final : public Kernel {
 public:
  WrongKernel(std::unique_ptr<Kernel> right, Device& device, WrongNumbers numbers)
      : right_(std::move(right)), device_(device), numbers_(std::move(numbers)) {}
  [[nodiscard]] std::size_t workspace() const override { return right_->workspace(); }
  [[nodiscard]] std::string name() const override { return right_->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    return std::make_unique<WrongLaunch>(right_->bind(inputs, outputs, workspace), device_, outputs[0], numbers_);
  }

 private:
  std::unique_ptr<Kernel> right_;
  Device& device_;
  WrongNumbers numbers_;
};

class WrongDevice final : public ForwardingDevice {
 public:
  WrongDevice(DevicePtr right, std::string name, WrongOperator wrong, WrongNumbers numbers, int kernels)
      : ForwardingDevice(std::move(right)), wrong_(std::move(wrong)), numbers_(std::move(numbers)), kernels_(kernels) {
    info_.name = std::move(name);
  }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    PreparedKernel prepared = ForwardingDevice::prepare(request);
    if (wrong_(*request.op) && kernels_-- > 0) {
      prepared.kernel = std::make_unique<WrongKernel>(std::move(prepared.kernel), device(), numbers_);
    }
    return prepared;
  }
  /// A wrong operator has a launch of its own.
  [[nodiscard]] std::optional<GroupKind> group_kind(const KernelRequest& request) const override {
    return wrong_(*request.op) ? std::nullopt : ForwardingDevice::group_kind(request);
  }

 private:
  WrongOperator wrong_;
  WrongNumbers numbers_;
  int kernels_;  // that will be wrong
};

}  // namespace

DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, float value) {
  return wrong_device(std::move(device), std::move(name), std::move(wrong), std::vector<float>{value});
}

DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, WrongNumber number, int kernels) {
  const auto numbers = [number = std::move(number)](float right) {
    const std::optional<float> one = number(right);
    return one ? std::vector<float>{*one} : std::vector<float>();
  };
  return std::make_shared<WrongDevice>(std::move(device), std::move(name), std::move(wrong), numbers, kernels);
}

DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, std::vector<float> values) {
  const auto numbers = [values = std::move(values)](float) { return values; };
  return std::make_shared<WrongDevice>(std::move(device), std::move(name), std::move(wrong), numbers, INT_MAX);
}

}  // namespace concord::test
