// Capability: the generation of an NVIDIA GPU. Used by Context, discovery and the kernels in cl_kernels/gemm and
// cl_kernels/shared/nvidia.
#pragma once

#include <boost/compute/device.hpp>
#include <cstddef>

namespace concord::opencl {

/// The compute capability of an NVIDIA device. It is 0.0 for other devices, for drivers that do not report it, and for
/// a device that the user limits to plain OpenCL C or to smaller work-groups than it supports (driver/limits.hpp).
struct Capability {
  unsigned major = 0, minor = 0;
  /// Whether the device has the matrix cores that gemm/mma.cl uses.
  [[nodiscard]] bool has_matrix_cores() const { return major >= 8; }
  /// Whether the device has the warpgroup instructions and the copy engine (TMA) that gemm/hopper/wgmma.cl and tma.cl
  /// use. Later GPUs have other instructions.
  [[nodiscard]] bool is_hopper() const { return major == 9; }
};
/// Asks the driver; Context::capability has the answer.
[[nodiscard]] Capability capability_of(const boost::compute::device& device);

/// Bytes of local memory that a kernel may declare. NVIDIA's driver reports 48 KiB, but applies that limit only to
/// kernel arguments. The limit for declarations follows from the compute capability (CUDA programming guide, table of
/// technical specifications). For other devices the function returns `reported`.
[[nodiscard]] std::size_t declarable_local_memory(Capability capability, std::size_t reported);

}  // namespace concord::opencl
