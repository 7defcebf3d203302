// A table that kernels read: a buffer with a copy of the host's entries. Used by kernels whose places are told by
// tables.
#pragma once

#include <boost/compute/buffer.hpp>
#include <span>

#include "concord/opencl/context.hpp"

namespace concord::opencl {

/// Copied before this returns. At least one entry.
template <class Entry>
[[nodiscard]] boost::compute::buffer constant_table(const Context& context, std::span<const Entry> entries) {
  // OpenCL takes a pointer to what it does not write.
  return {context.context(), entries.size_bytes(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
          const_cast<Entry*>(entries.data())};
}

}  // namespace concord::opencl
