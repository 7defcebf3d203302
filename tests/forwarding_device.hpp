// A device that hands every call on to another one: what tests derive from to change one thing.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "concord/device/device.hpp"

namespace concord::test {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(DevicePtr device) : info_(device->info()), device_(std::move(device)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] BufferPtr allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  [[nodiscard]] std::size_t allocated() const override { return device_->allocated(); }
  [[nodiscard]] std::size_t peak_allocated() const override { return device_->peak_allocated(); }
  [[nodiscard]] StagingPtr allocate_staging(std::size_t bytes) override { return device_->allocate_staging(bytes); }
  void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override {
    device_->write(dst, offset, bytes);
  }
  void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    device_->read(src, offset, bytes);
  }
  void write_deferred(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override {
    device_->write_deferred(dst, offset, bytes);
  }
  [[nodiscard]] EventPtr read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    return device_->read_async(src, offset, bytes);
  }
  void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset,
            std::size_t bytes) override {
    device_->copy(src, src_offset, dst, dst_offset, bytes);
  }
  void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) override {
    device_->fill(dst, offset, bytes, pattern);
  }
  [[nodiscard]] EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                                     const EventPtr& after) override {
    return device_->write_async(dst, offset, staging, bytes, after);
  }
  [[nodiscard]] EventPtr record() override { return device_->record(); }
  void wait_for(const EventPtr& event) override { device_->wait_for(event); }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override { return device_->prepare(request); }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                        const Layout& to) override {
    return device_->prepare_reorder(spec, from, to);
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorders(std::span<const Reorder> reorders) override {
    return device_->prepare_reorders(reorders);
  }
  [[nodiscard]] bool has_joined_operators() const override { return device_->has_joined_operators(); }
  [[nodiscard]] bool multiplies_patches(const TensorSpec& src, const TensorSpec& weights,
                                        Precision precision) const override {
    return device_->multiplies_patches(src, weights, precision);
  }
  [[nodiscard]] std::optional<GroupKind> group_kind(const KernelRequest& request) const override {
    return device_->group_kind(request);
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_group(std::span<const KernelRequest> requests) override {
    return device_->prepare_group(requests);
  }
  [[nodiscard]] bool groups_products(std::span<const TensorSpec> inputs, Precision precision) const override {
    return device_->groups_products(inputs, precision);
  }
  [[nodiscard]] std::optional<GroupKind> gradient_kind(const Operator& op, std::span<const TensorSpec> inputs,
                                                       Precision precision) const override {
    return device_->gradient_kind(op, inputs, precision);
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_appended(const KernelRequest& request) override {
    return device_->prepare_appended(request);
  }
  [[nodiscard]] bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const TensorSpec& output, const Expression& epilogue,
                                       std::span<const TensorSpec> extra, Precision precision) const override {
    return device_->supports_epilogue(op, op_inputs, output, epilogue, extra, precision);
  }
  [[nodiscard]] bool supports_prologue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const Expression& prologue, std::span<const TensorSpec> extra,
                                       Precision precision) const override {
    return device_->supports_prologue(op, op_inputs, prologue, extra, precision);
  }
  [[nodiscard]] Tuner* tuner() override { return device_->tuner(); }
  void finish() override { device_->finish(); }
  void flush() override { device_->flush(); }
  [[nodiscard]] double timed(Launch& launch) override { return device_->timed(launch); }
  void enqueue_recorded(Launch& launch, timeline::Label label) override { device_->enqueue_recorded(launch, label); }

 protected:
  [[nodiscard]] Device& device() { return *device_; }
  DeviceInfo info_;

 private:
  DevicePtr device_;
};

/// Stands for a device of its own.
class OtherDevice final : public ForwardingDevice {
 public:
  OtherDevice(DevicePtr device, std::string id) : ForwardingDevice(std::move(device)) { info_.id = std::move(id); }
};

}  // namespace concord::test
