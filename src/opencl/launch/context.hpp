// Context: one OpenCL device as the kernels of this backend see it — its queues, limits and program cache. Owned by
// OpenClDevice; every prepare function gets it.
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

class OpenClAlternatives;
class Tuning;
struct CheckedProduct;

/// What tile sizes and kernel alternatives are chosen by.
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
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// Of NVIDIA's devices; 0.0 of others.
  [[nodiscard]] Capability capability() const { return capability_; }
  /// Of AMD's and Intel's devices; none of others.
  [[nodiscard]] WaveUnits wave_units() const { return wave_units_; }
  /// What products are planned by.
  [[nodiscard]] const GpuModel& gpu() const { return gpu_; }
  /// For messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ProgramCache& programs() const { return programs_; }
  /// Which kernels were measured to be the fastest; null where the device was not given a table.
  [[nodiscard]] Tuning* tuning() const { return tuning_; }
  /// The table is the device's own.
  void set_tuning(Tuning* tuning) { tuning_ = tuning; }
  /// Products, besides dense ones, that matrix cores have to get right before they are used; null for none.
  using ProductsToCheck = std::vector<CheckedProduct> (*)();
  [[nodiscard]] ProductsToCheck products_to_check() const { return products_to_check_; }
  void set_products_to_check(ProductsToCheck products) { products_to_check_ = products; }
  /// Which of several ways kernels take (alternatives.hpp).
  [[nodiscard]] OpenClAlternatives& alternatives() const { return *alternatives_; }

  /// The program of cl_kernels/<file> (or of `source`) built with these -D definitions ("TILE_M=64", no spaces): from
  /// memory, else from the disk cache, else built. Returns before that is done, so that the kernels of a network are
  /// built side by side; a source that does not compile shows when the program is used.
  [[nodiscard]] PendingProgram program(std::string_view file, const std::vector<std::string>& definitions = {});
  [[nodiscard]] PendingProgram program_from(const std::string& source,
                                            const std::vector<std::string>& definitions = {});

  /// To be called before clFinish. Mesa's rusticl (22.3) waits there for nothing that was flushed before, unless
  /// something lies behind it that was not: a marker.
  void mark_end(const boost::compute::command_queue& queue) const;

  /// Holds what a library keeps for its users until the device is closed.
  void keep(std::shared_ptr<const void> library) { library_ = std::move(library); }

  /// The answer of `find` when it was first asked for by this name: for probes that take time.
  [[nodiscard]] bool remembered(std::string_view name, const std::function<bool()>& find);

  /// What a launch hands to an enqueue call as its event: null, but inside `events_of` a place in its result, with the
  /// kernel's name.
  [[nodiscard]] cl_event* next_event(std::string_view name) {
    if (!timing_) return nullptr;
    return &timing_events_.emplace_back(std::string(name), nullptr).second;
  }
  /// The events of what `enqueue` puts on the compute queue; those of a library's own commands may be null.
  [[nodiscard]] std::vector<NamedEvent> events_of(const std::function<void()>& enqueue);
  /// Runs `enqueue` alone and returns the seconds its commands took by the device's clock; the host's where the device
  /// has none.
  [[nodiscard]] double timed(const std::function<void()>& enqueue);

 private:
  [[nodiscard]] GpuModel find_gpu_model() const;
  /// Kernels for CPUs, or for GPUs.
  [[nodiscard]] bool uses_cpu_kernels() const;

  boost::compute::device device_;
  boost::compute::context context_;
  boost::compute::command_queue queue_;
  boost::compute::command_queue transfer_queue_;
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
  std::shared_ptr<const void> library_;  // kept for as long
  std::unique_ptr<OpenClAlternatives> alternatives_;
  Tuning* tuning_ = nullptr;
  ProductsToCheck products_to_check_ = nullptr;
  bool timing_ = false;
  std::deque<std::pair<std::string, cl_event>> timing_events_;
};

}  // namespace concord::opencl
