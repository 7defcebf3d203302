// Where buffers lie in the device's memory, for kernels that receive one of several (one_memory.hpp).
#pragma once

#include <boost/compute/command_queue.hpp>
#include <cstdint>
#include <mutex>
#include <string>

#include "concord/opencl/driver/handle.hpp"

namespace concord::opencl {

/// Asks one device. Outlives it for buffers that are freed later, perhaps by another thread.
class Addresses {
 public:
  /// `kernel`: address_of of shared/addresses.cl. `answer`: memory of kAnswerBytes.
  static constexpr std::size_t kAnswerBytes = 2 * sizeof(std::uint64_t);
  Addresses(boost::compute::command_queue queue, KernelHandle kernel, MemoryHandle answer, std::string device);
  ~Addresses();
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  /// Waits for all work that was enqueued before. Throws DeviceError.
  [[nodiscard]] std::uint64_t of(cl_mem memory);
  /// Keeps memory until the launches that were enqueued before this have ended: the driver does not know that they use
  /// it. Call it before the memory is released.
  void keep_until_idle(cl_mem memory) noexcept;

 private:
  boost::compute::command_queue queue_;
  KernelHandle kernel_;
  MemoryHandle answer_;
  std::string device_;
  std::mutex mutex_;  // of the kernel's arguments and the answer
};

}  // namespace concord::opencl
