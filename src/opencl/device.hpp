// OpenClDevice: the Device contract on one OpenCL device. Made by opencl::open_device.
#pragma once

#include "concord/opencl/gemm/tuning/tuner.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/event_log.hpp"
#include "concord/opencl/launch/staging.hpp"

namespace concord::opencl {

class OpenClDevice final : public Device {
 public:
  OpenClDevice(const boost::compute::device& device, DeviceInfo info);
  ~OpenClDevice() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] BufferPtr allocate(std::size_t bytes) override;
  [[nodiscard]] std::size_t allocated() const override { return context_->accounting()->now; }
  [[nodiscard]] std::size_t peak_allocated() const override { return context_->accounting()->peak; }
  [[nodiscard]] StagingPtr allocate_staging(std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<PeerMemory> allocate_peer(std::size_t bytes, int ranks, double deadline,
                                                          bool apart) override;

  void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override;
  void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override;
  void write_deferred(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override;
  [[nodiscard]] EventPtr read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override;
  void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset, std::size_t bytes) override;
  void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) override;
  [[nodiscard]] EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                                     const EventPtr& after) override;
  [[nodiscard]] EventPtr download_async(const Buffer& src, std::size_t offset, const StagingPtr& staging,
                                        std::size_t bytes, const EventPtr& after) override;
  [[nodiscard]] EventPtr record() override;
  void wait_for(const EventPtr& event) override;

  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override;
  /// Between row-major and channels-last, padded or columns (formula/), and from row-major to filters
  /// (conv/filters.hpp).
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                        const Layout& to) override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorders(std::span<const Reorder> reorders) override;
  [[nodiscard]] bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const TensorSpec& output, const Expression& epilogue,
                                       std::span<const TensorSpec> extra, Precision precision) const override;
  [[nodiscard]] bool has_joined_operators() const override { return true; }
  [[nodiscard]] bool folds_factors() const override { return true; }
  [[nodiscard]] bool multiplies_patches(const TensorSpec& src, const TensorSpec& weights,
                                        Precision precision) const override;
  [[nodiscard]] std::optional<GroupKind> group_kind(const KernelRequest& request) const override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare_group(std::span<const KernelRequest> requests) override;
  [[nodiscard]] bool groups_products(std::span<const TensorSpec> inputs, Precision precision) const override;
  [[nodiscard]] std::optional<GroupKind> gradient_kind(const Operator& op, std::span<const TensorSpec> inputs,
                                                       Precision precision) const override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare_appended(const KernelRequest& request) override;
  [[nodiscard]] bool supports_prologue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const Expression& prologue, std::span<const TensorSpec> extra,
                                       Precision precision) const override;
  [[nodiscard]] Tuner* tuner() override { return tuner_.get(); }
  [[nodiscard]] KernelAlternatives* alternatives() override;
  void finish() override;
  void flush() override;
  [[nodiscard]] double timed(Launch& launch) override;
  void enqueue_recorded(Launch& launch, timeline::Label label) override;

  /// For tests of the backend.
  [[nodiscard]] Context& context() { return *context_; }

 private:
  DeviceInfo info_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Tuning> tuning_;
  std::unique_ptr<OpenClTuner> tuner_;
  struct Logs;
  /// A copy on the compute queue; no event: the timeline was off.
  void record_copy(const char* name, EventHandle event, std::size_t bytes);
  std::unique_ptr<Logs> logs_;
  std::unique_ptr<TransferRing> ring_;
};

}  // namespace concord::opencl
