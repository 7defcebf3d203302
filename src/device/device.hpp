// Device: the only interface a backend implements. Everything above it is written once for all devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/exclusive.hpp"
#include "concord/core/export.hpp"
#include "concord/core/process_mark.hpp"
#include "concord/core/timeline.hpp"
#include "concord/device/buffer.hpp"
#include "concord/device/kernel.hpp"

namespace concord {
class Tuner;
class Variants;
}  // namespace concord

namespace CONCORD_PUBLIC concord {

class Expression;

enum class DeviceKind : std::uint8_t { cpu, gpu, accelerator };

/// What a device says of itself.
struct DeviceInfo {
  std::string id;        // what Device::open takes: "cpu", "opencl:0"
  std::string backend;   // "onednn", "opencl"
  std::string name;      // "NVIDIA H200"
  std::string vendor;    // "NVIDIA Corporation"
  std::string platform;  // "NVIDIA CUDA", "oneDNN 2.6.3"
  std::string driver;    // driver or library version
  DeviceKind kind = DeviceKind::cpu;
  std::uint64_t memory = 0;          // bytes
  std::uint64_t max_allocation = 0;  // bytes of one buffer
  std::uint64_t local_memory = 0;    // bytes a work-group shares; 0 on the CPU backend
  std::uint32_t compute_units = 0;
  std::uint32_t clock_mhz = 0;
  std::uint64_t max_work_group = 0;
  bool unified_memory = false;          // host and device share memory
  std::vector<std::string> precisions;  // of products: "fp32", and those for which it has faster units
  std::string pci_address;              // as NVML spells it: "00000000:3B:00.0"; empty where the driver does not tell
};

/// A point in the work of a queue.
class Event {
 public:
  virtual ~Event() = default;
  /// Blocks the host until it has happened.
  virtual void wait() = 0;
};
using EventPtr = std::shared_ptr<Event>;

/// Host memory for transfers; from Device::allocate_staging.
class Staging {
 public:
  virtual ~Staging() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() = 0;
};
using StagingPtr = std::shared_ptr<Staging>;

class Device;
using DevicePtr = std::shared_ptr<Device>;

/// One compute device with an in-order compute queue and a transfer queue beside it. A device and its buffers,
/// kernels and launches are used from one thread at a time; different devices from different threads at once. In a child
/// (fork) of the process that opened it every use throws DeviceError.
class Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Opens a device:
  ///   "auto"        the fastest GPU, then another OpenCL accelerator, then the oneDNN CPU;
  ///   "cpu"         the oneDNN CPU;       "opencl"  the best OpenCL device, PoCL included;
  ///   "opencl:1"    by index;             "opencl:nvidia"  by part of vendor, platform or name, or by kind ("gpu").
  /// An empty selector takes $CONCORD_DEVICE, else "auto". Throws ArgumentError for what is no selector, and
  /// DeviceError when none matches, or when several do and they are not equally good; the message lists what was found
  /// and which package provides a driver.
  [[nodiscard]] static DevicePtr open(std::string_view selector = {});
  /// Every device of the machine; a broken driver is skipped and reported through the log.
  [[nodiscard]] static std::vector<DeviceInfo> list();

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // --- memory
  /// Throws OutOfMemory; never gives less than asked.
  [[nodiscard]] virtual BufferPtr allocate(std::size_t bytes) = 0;
  /// Bytes in buffers now and at most so far.
  [[nodiscard]] virtual std::size_t allocated() const = 0;
  [[nodiscard]] virtual std::size_t peak_allocated() const = 0;
  /// Host memory that the device reads and writes at full speed (pinned where there is such a thing).
  [[nodiscard]] virtual StagingPtr allocate_staging(std::size_t bytes) = 0;

  // --- data movement, ordered with the compute queue
  /// Copies `bytes` in; they may be reused at once. Does not wait for earlier work.
  virtual void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) = 0;
  /// Waits for earlier work on `src`, then copies out.
  virtual void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) = 0;
  /// As `write`, but `bytes` stay as they are until what is enqueued by now is done: a device may copy them that late.
  virtual void write_kept(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) {
    write(dst, offset, bytes);
  }
  /// As `read`, but may return before `bytes` are there, in which case they are once the event has happened. Null says
  /// that they are there.
  [[nodiscard]] virtual EventPtr read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) {
    read(src, offset, bytes);
    return nullptr;
  }
  /// The host's memory as a buffer that kernels write, which `bytes` have to outlive: from a device that computes in
  /// it, and whose work is done when it is enqueued; null from any other.
  [[nodiscard]] virtual BufferPtr buffer_over(std::span<std::byte> bytes) {
    static_cast<void>(bytes);
    return nullptr;
  }
  /// Device-side.
  virtual void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset,
                    std::size_t bytes) = 0;
  /// Device-side; repeats the 4-byte pattern. offset and bytes are multiples of 4.
  virtual void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) = 0;
  /// Copies staging memory in on the transfer queue, beside running kernels, once `after` (may be null) has happened.
  /// Compute does not wait for it unless told to by `wait_for`; the staging memory must stay untouched until then.
  [[nodiscard]] virtual EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging,
                                             std::size_t bytes, const EventPtr& after) = 0;
  /// Happens when everything now on the compute queue is done.
  [[nodiscard]] virtual EventPtr record() = 0;
  /// What is enqueued on the compute queue from now on starts after `event`; the host does not wait.
  virtual void wait_for(const EventPtr& event) = 0;

  // --- computation
  /// The best kernel for an operator with these specs and layouts. Throws NotSupported by name, never a stub.
  [[nodiscard]] virtual PreparedKernel prepare(const KernelRequest& request) = 0;
  /// A kernel of one input and one output that rearranges a tensor.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                                const Layout& to) = 0;
  /// Whether `op` can apply `epilogue` to its first output before writing it. Input 0 of the expression is that
  /// output; further inputs have the shapes of `extra`, broadcast to the output's.
  [[nodiscard]] virtual bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                               const TensorSpec& output, const Expression& epilogue,
                                               std::span<const TensorSpec> extra) const = 0;
  /// Finds the fastest kernels by measuring (tuner.hpp); null on a device that has no choice. Lives as long as the
  /// device.
  [[nodiscard]] virtual Tuner* tuner() { return nullptr; }
  /// The ways to compute beside plainer ones (variants.hpp); null of a device that has one for everything. Lives as
  /// long as the device.
  [[nodiscard]] virtual Variants* variants() { return nullptr; }
  /// Waits until everything enqueued is done. Throws DeviceError when it failed.
  virtual void finish() = 0;
  /// Hands enqueued work to the device without waiting.
  virtual void flush() {}
  /// Runs one launch alone and returns its seconds, by the device's own clock where it has one.
  [[nodiscard]] virtual double timed(Launch& launch) = 0;
  /// Enqueues a launch and puts it on the timeline, once it has ended, by the device's own clock where it has one.
  virtual void enqueue_recorded(Launch& launch, timeline::Label label) = 0;

  /// A use of the device by the calling thread: whatever touches it makes one for as long. Throws DeviceError in a child
  /// of the process that opened the device, ArgumentError while another thread uses it.
  class Use {
   public:
    explicit Use(const Device& device) : use_(own(device).use_, [&] { return "the device " + device.info().id; }) {}

   private:
    static const Device& own(const Device& device) {
      device.require_own_process();
      return device;
    }
    Exclusive::Use use_;
  };
  /// The first of the two alone.
  void require_own_process() const {
    if (process_.is_inherited()) process_.require_own("the device " + info().id);
  }

 protected:
  Device() = default;

 private:
  ProcessMark process_;
  mutable Exclusive use_;
};

}  // namespace concord
