// Device: the interface that a backend implements. All code above the backends uses only this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
#include "concord/device/peer_memory.hpp"

namespace concord {
class Tuner;
class KernelAlternatives;
}  // namespace concord

namespace CONCORD_PUBLIC concord {

class Expression;

enum class DeviceKind : std::uint8_t { cpu, gpu, accelerator };

/// The properties that a device reports.
struct DeviceInfo {
  std::string id;        // what Device::open takes: "cpu", "opencl:0"
  std::string backend;   // "onednn", "opencl"
  std::string name;      // "NVIDIA H200"
  std::string vendor;    // "NVIDIA Corporation"
  std::string platform;  // "NVIDIA CUDA", "oneDNN 2.6.3"
  std::string driver;    // driver or library version
  DeviceKind kind = DeviceKind::cpu;
  std::uint64_t memory = 0;          // bytes
  std::uint64_t max_allocation = 0;  // largest buffer in bytes
  std::uint64_t local_memory = 0;    // bytes that a work-group shares; 0 on the CPU backend
  std::uint32_t compute_units = 0;
  std::uint32_t clock_mhz = 0;
  std::uint64_t max_work_group = 0;
  bool unified_memory = false;          // host and device share memory
  std::vector<std::string> precisions;  // of matrix multiplications: "fp32", and others if matrix cores support them
  std::string pci_address;  // in the format of NVML, "00000000:3B:00.0"; empty if the driver does not report it
};

/// A point in the sequence of work on a queue.
class Event {
 public:
  virtual ~Event() = default;
  /// Blocks the host until the device reaches the point.
  virtual void wait() = 0;
  /// Returns whether the device has reached it, without waiting. The default is for devices whose work is done when a
  /// call returns.
  [[nodiscard]] virtual bool is_reached() { return true; }
};
using EventPtr = std::shared_ptr<Event>;

/// Host memory for transfers. Device::allocate_staging makes it.
class Staging {
 public:
  virtual ~Staging() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() = 0;
};
using StagingPtr = std::shared_ptr<Staging>;

class Device;
using DevicePtr = std::shared_ptr<Device>;

/// A compute device with an in-order compute queue and a separate transfer queue. Only one thread at a time may use a
/// device with its buffers, kernels and launches; several threads may use different devices. Each use in a child
/// process (fork) throws DeviceError.
class Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Opens a device. Selectors:
  ///   "auto"           the fastest GPU, else another OpenCL accelerator, else the CPU through oneDNN
  ///   "cpu"            the CPU through oneDNN
  ///   "opencl"         the best OpenCL device, including PoCL
  ///   "opencl:1"       an OpenCL device by its index
  ///   "opencl:nvidia"  an OpenCL device by part of its vendor, platform or name, or by its kind ("gpu")
  /// An empty selector means $CONCORD_DEVICE, else "auto"; of the ranks that torchrun, mpirun or srun has started on a
  /// machine, each takes another of its GPUs then. Throws ArgumentError for an invalid selector. Throws DeviceError if
  /// no device matches, or if several match and none is better than the others; the message lists the devices found and
  /// the packages that provide drivers.
  [[nodiscard]] static DevicePtr open(std::string_view selector = {});
  /// Lists every device of the machine. Skips a broken driver and reports it through the log.
  [[nodiscard]] static std::vector<DeviceInfo> list();

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // --- memory
  /// Allocates at least `bytes` bytes. Throws OutOfMemory.
  [[nodiscard]] virtual BufferPtr allocate(std::size_t bytes) = 0;
  /// The bytes in buffers now, and in what kernels keep for themselves (tables, memory kept from run to run); and the
  /// maximum so far.
  [[nodiscard]] virtual std::size_t allocated() const = 0;
  [[nodiscard]] virtual std::size_t peak_allocated() const = 0;
  /// Allocates host memory that the device reads and writes at full speed (pinned memory where the driver has it).
  [[nodiscard]] virtual StagingPtr allocate_staging(std::size_t bytes) = 0;

  /// Allocates memory that `ranks` processes of this machine, each with such a device, read and write directly. Waits
  /// of kernels for other ranks end after `deadline` seconds. Sums run in the order of their calls. Memory with `apart`
  /// has a queue of its own: its sums are ordered among themselves only. Returns null if the driver cannot do
  /// that; throws OutOfMemory.
  [[nodiscard]] virtual std::unique_ptr<PeerMemory> allocate_peer(std::size_t bytes, int ranks, double deadline,
                                                                  bool apart) {
    static_cast<void>(bytes), static_cast<void>(ranks), static_cast<void>(deadline), static_cast<void>(apart);
    return nullptr;
  }

  // --- data movement, ordered with the compute queue
  /// Copies `bytes` to the device. The caller may change `bytes` when the call returns. Does not wait for earlier work.
  virtual void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) = 0;
  /// Waits for earlier work on `src`, then copies to the host.
  virtual void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) = 0;
  /// As `write`, but the device may copy `bytes` later. The caller must not change `bytes` until all work that is
  /// enqueued now is done.
  virtual void write_deferred(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) {
    write(dst, offset, bytes);
  }
  /// As `read`, but may return before the copy is done. Then `bytes` are valid after the returned event. Null means
  /// that they are valid now.
  [[nodiscard]] virtual EventPtr read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) {
    read(src, offset, bytes);
    return nullptr;
  }
  /// Makes a buffer over host memory that kernels can write; `bytes` must outlive it. Returns null unless the device
  /// computes in host memory and finishes each kernel in the call that enqueues it.
  [[nodiscard]] virtual BufferPtr buffer_over(std::span<std::byte> bytes) {
    static_cast<void>(bytes);
    return nullptr;
  }
  /// Copies between buffers on the device.
  virtual void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset,
                    std::size_t bytes) = 0;
  /// Fills a part of a buffer on the device with a 4-byte pattern. `offset` and `bytes` are multiples of 4.
  virtual void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) = 0;
  /// Copies staging memory to the device on the transfer queue, in parallel with kernels, after the event `after` (may
  /// be null). The compute queue does not wait for the copy unless `wait_for` is called. The staging memory must not
  /// change until the returned event.
  [[nodiscard]] virtual EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging,
                                             std::size_t bytes, const EventPtr& after) = 0;
  /// Copies from the device to staging memory on the transfer queue, in parallel with kernels, after the event `after`
  /// (may be null: at once). The staging memory is valid after the returned event. The default copies on the compute
  /// queue.
  [[nodiscard]] virtual EventPtr download_async(const Buffer& src, std::size_t offset, const StagingPtr& staging,
                                                std::size_t bytes, const EventPtr& after) {
    wait_for(after);
    read(src, offset, staging->bytes().first(bytes));
    return record();
  }
  /// Returns an event after all work that is now on the compute queue.
  [[nodiscard]] virtual EventPtr record() = 0;
  /// Lets work that is enqueued later on the compute queue start after `event`. The host does not wait.
  virtual void wait_for(const EventPtr& event) = 0;

  // --- computation
  /// Prepares the best kernel for an operator with these specs and layouts. Throws NotSupported with the operator's
  /// name.
  [[nodiscard]] virtual PreparedKernel prepare(const KernelRequest& request) = 0;
  /// Prepares a kernel that copies a tensor from one layout into another. It has one input and one output.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                                const Layout& to) = 0;
  /// A tensor of this spec, and the layouts that it has and gets.
  struct Reorder {
    TensorSpec spec;
    Layout from, to;
  };
  /// Prepares one kernel for several reorders into layouts that say is_made_in_groups(). It has an input and an output
  /// for each, in their order. Returns null if the device has no such kernel.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_reorders(std::span<const Reorder> /*reorders*/) {
    return nullptr;
  }
  /// Returns whether the kernel of `op` can apply `epilogue` to its first output before writing it, and should in a
  /// program of this precision. Input 0 of the expression is that output. Further inputs have the specs `extra` and
  /// broadcast to the shape of the output.
  [[nodiscard]] virtual bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                               const TensorSpec& output, const Expression& epilogue,
                                               std::span<const TensorSpec> extra, Precision precision) const = 0;
  /// Returns whether the kernel of `op`, which may be fused, can apply `prologue` to each value of its input 0 as it
  /// reads it. Input 0 of the expression is that value. Further inputs have the specs `extra` and broadcast to the
  /// shape of op's input 0.
  [[nodiscard]] virtual bool supports_prologue(const Operator& /*op*/, std::span<const TensorSpec> /*op_inputs*/,
                                               const Expression& /*prologue*/, std::span<const TensorSpec> /*extra*/,
                                               Precision /*precision*/) const {
    return false;
  }
  /// Returns whether compile should multiply the factors that follow a convolution, one for each channel, into its
  /// weights. It does so once, and only where no update changes them.
  [[nodiscard]] virtual bool folds_factors() const { return false; }
  /// Returns whether a convolution of `src` whose patches do not overlap, and the gradient of its weights, are faster
  /// as matrix multiplications of them.
  [[nodiscard]] virtual bool multiplies_patches(const TensorSpec& /*src*/, const TensorSpec& /*weights*/,
                                                Precision /*precision*/) const {
    return false;
  }
  /// Returns whether the device has kernels of the operators that compile makes of two: ops::CrossEntropyWithGradient,
  /// ops::AllFiniteWithNumbers, and ops::ScatterAdd with three inputs.
  [[nodiscard]] virtual bool has_joined_operators() const { return false; }
  /// Returns of which kind the operator is, if prepare_group takes it.
  [[nodiscard]] virtual std::optional<GroupKind> group_kind(const KernelRequest& /*request*/) const { return {}; }
  /// Prepares one kernel for several operators of one kind, with the inputs and the output of each operator, in their
  /// order. Null where a kernel each is faster.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_group(std::span<const KernelRequest> /*requests*/) {
    return nullptr;
  }
  /// Returns whether several of these matrix multiplications, whose sizes are equal and which share an operand, should
  /// be one operator (ops::OperatorGroup), of which the device then has a kernel.
  [[nodiscard]] virtual bool groups_products(std::span<const TensorSpec> /*inputs*/, Precision /*precision*/) const {
    return false;
  }
  /// Returns of which kind an operator of the gradient pass is, if several of that kind should be one operator
  /// (ops::OperatorGroup). Its kernel is one launch where that is no slower. Only GroupKind's name and numbers count.
  [[nodiscard]] virtual std::optional<GroupKind> gradient_kind(const Operator& /*op*/,
                                                               std::span<const TensorSpec> /*inputs*/,
                                                               Precision /*precision*/) const {
    return {};
  }
  /// Prepares a kernel of an ops::Appended with operands that lie so. Its results lie as that of its base does. Null
  /// where two launches are no slower.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_appended(const KernelRequest& /*request*/) { return nullptr; }
  /// The tuner, which finds the fastest kernels by measuring; for the library and its command. Null if the device has
  /// no choice of kernels. Lives as long as the device.
  [[nodiscard]] virtual Tuner* tuner() { return nullptr; }
  /// The kernel alternatives of the device; for the library and its command. Null if the device has one kernel for each
  /// operator. Lives as long as the device.
  [[nodiscard]] virtual KernelAlternatives* alternatives() { return nullptr; }
  /// Waits until all enqueued work is done. Throws DeviceError if the work failed.
  virtual void finish() = 0;
  /// Submits enqueued work to the device without waiting for it.
  virtual void flush() {}
  /// Runs one launch alone and returns its time in seconds, measured by the device's clock if there is one.
  [[nodiscard]] virtual double timed(Launch& launch) = 0;
  /// Enqueues a launch and adds it to the timeline when it has ended, with times of the device's clock if there is one.
  virtual void enqueue_recorded(Launch& launch, timeline::Label label) = 0;

  /// Marks the device as used by the calling thread during the lifetime of the Use; code that calls a device makes one.
  /// Throws DeviceError in a child of the process that opened the device, and ArgumentError while another thread uses
  /// it.
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
  /// Throws DeviceError in a child of the process that opened the device.
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
