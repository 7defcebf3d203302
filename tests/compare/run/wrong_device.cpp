// The wrong device: a launch of a wrong operator is followed by a fill.
#include "compare/wrong_device.hpp"

#include <bit>

#include "forwarding_device.hpp"

namespace concord::test {
namespace {

class WrongLaunch final : public Launch {
 public:
  WrongLaunch(std::unique_ptr<Launch> right, Device& device, Operand result, WrongNumber number)
      : right_(std::move(right)), device_(device), result_(result), number_(std::move(number)) {}
  void enqueue() override {
    right_->enqueue();
    float right = 0;
    device_.read(*result_.buffer, result_.offset, std::as_writable_bytes(std::span(&right, 1)));
    const std::optional<float> wrong = number_(right);
    if (wrong) device_.fill(*result_.buffer, result_.offset, sizeof *wrong, std::bit_cast<std::uint32_t>(*wrong));
  }

 private:
  std::unique_ptr<Launch> right_;
  Device& device_;
  Operand result_;
  WrongNumber number_;
};

class WrongKernel final : public Kernel {
 public:
  WrongKernel(std::unique_ptr<Kernel> right, Device& device, WrongNumber number)
      : right_(std::move(right)), device_(device), number_(std::move(number)) {}
  [[nodiscard]] std::size_t workspace() const override { return right_->workspace(); }
  [[nodiscard]] std::string name() const override { return right_->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    return std::make_unique<WrongLaunch>(right_->bind(inputs, outputs, workspace), device_, outputs[0], number_);
  }

 private:
  std::unique_ptr<Kernel> right_;
  Device& device_;
  WrongNumber number_;
};

class WrongDevice final : public ForwardingDevice {
 public:
  WrongDevice(DevicePtr right, std::string name, WrongOperator wrong, WrongNumber number)
      : ForwardingDevice(std::move(right)), wrong_(std::move(wrong)), number_(std::move(number)) {
    info_.name = std::move(name);
  }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    PreparedKernel prepared = ForwardingDevice::prepare(request);
    if (wrong_(*request.op)) {
      prepared.kernel = std::make_unique<WrongKernel>(std::move(prepared.kernel), device(), number_);
    }
    return prepared;
  }

 private:
  WrongOperator wrong_;
  WrongNumber number_;
};

}  // namespace

DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, float value) {
  return wrong_device(std::move(device), std::move(name), std::move(wrong), [value](float) { return value; });
}

DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, WrongNumber number) {
  return std::make_shared<WrongDevice>(std::move(device), std::move(name), std::move(wrong), std::move(number));
}

}  // namespace concord::test
