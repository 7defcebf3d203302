// A table that kernels read: a buffer with a copy of the host's entries. Used by kernels that find positions through
// tables.
#pragma once

#include <boost/compute/buffer.hpp>
#include <span>

#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Copies the entries, of which there must be at least one, before it returns. Throws OutOfMemory or DeviceError.
template <class Entry>
[[nodiscard]] boost::compute::buffer constant_table(const Context& context, std::span<const Entry> entries) {
  cl_int status = CL_SUCCESS;
  // OpenCL takes a pointer to non-const, but does not write.
  const cl_mem memory = clCreateBuffer(context.context().get(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                       entries.size_bytes(), const_cast<Entry*>(entries.data()), &status);
  check_allocation(status, "clCreateBuffer", context.name());
  return boost::compute::buffer(memory, false);
}

}  // namespace concord::opencl
