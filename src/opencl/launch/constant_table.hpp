// A table that kernels read: a buffer with a copy of the host's entries, which Device::allocated counts. Used by
// kernels that find positions through tables.
#pragma once

#include <memory>
#include <span>

#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Copies the entries, of which there must be at least one, before it returns. Throws OutOfMemory or DeviceError.
template <class Entry>
[[nodiscard]] std::shared_ptr<const OpenClBuffer> constant_table(const Context& context,
                                                                 std::span<const Entry> entries) {
  cl_int status = CL_SUCCESS;
  // OpenCL takes a pointer to non-const, but does not write.
  MemoryHandle memory(clCreateBuffer(context.context().get(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                     entries.size_bytes(), const_cast<Entry*>(entries.data()), &status));
  check_allocation(status, "clCreateBuffer", context.name());
  return std::make_shared<const OpenClBuffer>(std::move(memory), entries.size_bytes(), context.accounting());
}

}  // namespace concord::opencl
