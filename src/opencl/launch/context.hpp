// Context: one OpenCL device for the kernels of this backend: its queues, limits and program cache. Owned by
// OpenClDevice, which passes it to every prepare function.
#pragma once

#ifndef CONCORD_BACKEND_OPENCL
#error "this header belongs to the OpenCL backend"
#endif

#include <boost/compute/command_queue.hpp>
#include <boost/compute/context.hpp>
#include <boost/compute/device.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/device.hpp"
#include "concord/opencl/driver/capability.hpp"
#include "concord/opencl/driver/gpu_model.hpp"
#include "concord/opencl/driver/handle.hpp"
#include "concord/opencl/driver/matrix_cores.hpp"
#include "concord/opencl/program/cache.hpp"

namespace concord::opencl {

struct Accounting;
class Addresses;
class OpenClAlternatives;
class Tuning;
struct CheckedProduct;

/// The device limits that determine tile sizes and kernel alternatives.
struct Limits {
  std::size_t max_work_group = 1;
  std::size_t local_memory = 0;
  std::uint64_t allocation = 0;  // bytes of one buffer
  std::uint32_t compute_units = 1;
  bool is_cpu = false;  // PoCL and other CPU implementations: big tiles a work-item, small groups
  bool is_nvidia = false;
  bool are_lowered = false;  // the device itself has more (driver/limits.hpp)
};

class Context {
 public:
  explicit Context(boost::compute::device device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const boost::compute::device& device() const { return device_; }
  [[nodiscard]] const boost::compute::context& context() const { return context_; }
  [[nodiscard]] boost::compute::command_queue& queue() { return queue_; }
  [[nodiscard]] boost::compute::command_queue& transfer_queue() { return transfer_queue_; }
  /// For sums over several devices, whose kernels wait for other devices. Made at the first use.
  [[nodiscard]] boost::compute::command_queue& exchange_queue();
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// Of NVIDIA's devices; 0.0 of others.
  [[nodiscard]] Capability capability() const { return capability_; }
  /// Of AMD's and Intel's devices; none of others.
  [[nodiscard]] WaveUnits wave_units() const { return wave_units_; }
  /// The model by which matrix multiplications are planned.
  [[nodiscard]] const GpuModel& gpu() const { return gpu_; }
  /// For messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ProgramCache& programs() const { return programs_; }
  /// The bytes that Device::allocated counts (buffer.hpp).
  [[nodiscard]] const std::shared_ptr<Accounting>& accounting() const { return accounting_; }
  /// The table of measured kernel choices; null where the device has no table.
  [[nodiscard]] Tuning* tuning() const { return tuning_; }
  /// The table is the device's own.
  void set_tuning(Tuning* tuning) { tuning_ = tuning; }
  /// Matrix multiplications, besides dense ones, that the check of the matrix cores must include; null for none.
  using ProductsToCheck = std::vector<CheckedProduct> (*)();
  [[nodiscard]] ProductsToCheck products_to_check() const { return products_to_check_; }
  void set_products_to_check(ProductsToCheck products) { products_to_check_ = products; }
  /// The kernel alternatives of the device (alternatives.hpp).
  [[nodiscard]] OpenClAlternatives& alternatives() const { return *alternatives_; }

  /// The program of cl_kernels/<file> (or of `source`) with these -D definitions ("TILE_M=64", no spaces): from memory,
  /// else from the disk cache, else built. Returns before the program is built, so that the kernels of a network are
  /// built in parallel. The use of the program reports a source that does not compile.
  [[nodiscard]] PendingProgram program(std::string_view file, const std::vector<std::string>& definitions = {});
  [[nodiscard]] PendingProgram program_from(const std::string& source,
                                            const std::vector<std::string>& definitions = {});

  /// Enqueues a marker on rusticl. Call it before clFinish: with Mesa's rusticl (22.3) clFinish does not wait for
  /// flushed commands unless an unflushed command follows them.
  void mark_end(const boost::compute::command_queue& queue) const;

  /// Keeps objects of a library alive until the device is closed.
  void keep(std::shared_ptr<const void> library) { library_ = std::move(library); }

  /// Of the buffers of this device. Made at the first use.
  [[nodiscard]] const std::shared_ptr<Addresses>& addresses();

  /// Calls `find` at the first call with this name, and returns its answer then and later. For probes that take time.
  [[nodiscard]] bool remembered(std::string_view name, const std::function<bool()>& find);

  /// The event argument of an enqueue call: null, but inside `events_of` a pointer into its result, stored with the
  /// kernel's name.
  [[nodiscard]] cl_event* next_event(std::string_view name) {
    if (!timing_) return nullptr;
    return &timing_events_.emplace_back(std::string(name), nullptr).second;
  }
  /// The events of the commands that `enqueue` puts on the compute queue. Events of a library's own commands may be
  /// null.
  [[nodiscard]] std::vector<NamedEvent> events_of(const std::function<void()>& enqueue);
  /// Runs `enqueue` alone and returns the time of its commands in seconds, by the device's clock, or by the host's
  /// where the device has none.
  [[nodiscard]] double timed(const std::function<void()>& enqueue);

 private:
  [[nodiscard]] GpuModel find_gpu_model() const;
  /// Whether the device uses the kernels for CPUs, not those for GPUs.
  [[nodiscard]] bool uses_cpu_kernels() const;

  std::shared_ptr<Accounting> accounting_;
  boost::compute::device device_;
  boost::compute::context context_;
  boost::compute::command_queue queue_;
  boost::compute::command_queue transfer_queue_;
  boost::compute::command_queue exchange_queue_;
  std::string name_;
  bool is_rusticl_;
  std::string options_;
  std::string prologue_;  // of every source
  Limits limits_;
  Capability capability_;
  WaveUnits wave_units_;
  GpuModel gpu_;
  ProgramCache programs_;
  std::map<std::string, bool, std::less<>> answers_;
  std::shared_ptr<Addresses> addresses_;
  std::shared_ptr<const void> library_;  // kept for as long
  std::unique_ptr<OpenClAlternatives> alternatives_;
  Tuning* tuning_ = nullptr;
  ProductsToCheck products_to_check_ = nullptr;
  bool timing_ = false;
  std::deque<std::pair<std::string, cl_event>> timing_events_;
};

}  // namespace concord::opencl
