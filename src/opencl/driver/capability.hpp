// Capability: which generation of NVIDIA's GPUs a device is. Used by Context, discovery and the kernels in
// cl_kernels/gemm, cl_kernels/shared/nvidia.
#pragma once

#include <boost/compute/device.hpp>
#include <cstddef>

namespace concord::opencl {

/// The compute capability of an NVIDIA device; 0.0 of others, of drivers that do not tell, and where the device is held
/// to plain OpenCL C or to smaller work-groups than it has (driver/limits.hpp).
struct Capability {
  unsigned major = 0, minor = 0;
  /// The matrix cores that gemm/mma.cl is for.
  [[nodiscard]] bool has_matrix_cores() const { return major >= 8; }
  /// The warpgroup instructions and the copy engine of gemm/hopper/wgmma.cl and tma.cl; later GPUs have others.
  [[nodiscard]] bool is_hopper() const { return major == 9; }
};
/// Asks the driver; Context::capability has the answer.
[[nodiscard]] Capability capability_of(const boost::compute::device& device);

/// Bytes of local memory that a kernel may declare. The driver reports 48 KiB, but holds only arguments to it; the rest
/// goes by the compute capability (CUDA programming guide, table of technical specifications). Of others, `reported`.
[[nodiscard]] std::size_t declarable_local_memory(Capability capability, std::size_t reported);

}  // namespace concord::opencl
