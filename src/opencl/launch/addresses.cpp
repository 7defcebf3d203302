// Questions for addresses, and the copies that keep memory.
#include "concord/opencl/launch/addresses.hpp"

#include <utility>

#include "concord/opencl/driver/status.hpp"

namespace concord::opencl {

Addresses::Addresses(boost::compute::command_queue queue, KernelHandle kernel, MemoryHandle answer, std::string device)
    : queue_(std::move(queue)), kernel_(std::move(kernel)), answer_(std::move(answer)), device_(std::move(device)) {}

Addresses::~Addresses() {
  if (driver_is_gone()) static_cast<void>(new boost::compute::command_queue(std::move(queue_)));
}

std::uint64_t Addresses::of(cl_mem memory) {
  const std::lock_guard lock(mutex_);
  const cl_mem answer = answer_.get();
  constexpr std::size_t kOne = 1;
  std::uint64_t address = 0;
  check(clSetKernelArg(kernel_.get(), 0, sizeof memory, &memory), "setting an argument of address_of", device_);
  check(clSetKernelArg(kernel_.get(), 1, sizeof answer, &answer), "setting an argument of address_of", device_);
  check(clEnqueueNDRangeKernel(queue_.get(), kernel_.get(), 1, nullptr, &kOne, nullptr, 0, nullptr, nullptr),
        "enqueueing kernel address_of", device_);
  check(clEnqueueReadBuffer(queue_.get(), answer, CL_TRUE, 0, sizeof address, &address, 0, nullptr, nullptr),
        "clEnqueueReadBuffer", device_);
  return address;
}

void Addresses::keep_until_idle(cl_mem memory) noexcept {
  if (driver_is_gone()) return;
  // The driver knows that a copy reads the memory, and the copy stands behind all launches. Its byte goes behind the
  // answer.
  clEnqueueCopyBuffer(queue_.get(), memory, answer_.get(), 0, sizeof(std::uint64_t), 1, 0, nullptr, nullptr);
}

}  // namespace concord::opencl
