// The wrong device: a launch of a wrong operator is followed by a fill.
#include "compare/wrong_device.hpp"

#include <bit>

#include "forwarding_device.hpp"

namespace concord::test {
namespace {

class WrongLaunch final : public Launch {
 public:
  WrongLaunch(std::unique_ptr<Launch> right, Device& device, Operand result, std::uint32_t bits)
      : right_(std::move(right)), device_(device), result_(result), bits_(bits) {}
  void enqueue() override {
    right_->enqueue();
    device_.fill(*result_.buffer, result_.offset, sizeof bits_, bits_);
  }

 private:
  std::unique_ptr<Launch> right_;
  Device& device_;
  Operand result_;
  std::uint32_t bits_;
};

class WrongKernel final : public Kernel {
 public:
  WrongKernel(std::unique_ptr<Kernel> right, Device& device, std::uint32_t bits)
      : right_(std::move(right)), device_(device), bits_(bits) {}
  [[nodiscard]] std::size_t workspace() const override { return right_->workspace(); }
  [[nodiscard]] std::string name() const override { return right_->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    return std::make_unique<WrongLaunch>(right_->bind(inputs, outputs, workspace), device_, outputs[0], bits_);
  }

 private:
  std::unique_ptr<Kernel> right_;
  Device& device_;
  std::uint32_t bits_;
};

class WrongDevice final : public ForwardingDevice {
 public:
  WrongDevice(DevicePtr right, std::string name, WrongOperator wrong, float value)
      : ForwardingDevice(std::move(right)), wrong_(std::move(wrong)), bits_(std::bit_cast<std::uint32_t>(value)) {
    info_.name = std::move(name);
  }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    PreparedKernel prepared = ForwardingDevice::prepare(request);
    if (wrong_(*request.op)) {
      prepared.kernel = std::make_unique<WrongKernel>(std::move(prepared.kernel), device(), bits_);
    }
    return prepared;
  }

 private:
  WrongOperator wrong_;
  std::uint32_t bits_;
};

}  // namespace

DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, float value) {
  return std::make_shared<WrongDevice>(std::move(device), std::move(name), std::move(wrong), value);
}

}  // namespace concord::test
