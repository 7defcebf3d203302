// PeerMemory on NVIDIA's GPUs. Memory that CUDA's driver allocates can be exported as a file descriptor, and OpenCL
// imports such descriptors (cl_khr_external_memory_opaque_fd), those of other GPUs too. So plain OpenCL kernels read
// and write the memory of another GPU, over NVLink or PCIe.
#pragma once

#include "concord/device/peer_memory.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// As Device::allocate_peer. Null if the device is no GPU of NVIDIA, or its driver lacks what this needs; the log
/// (debug) says what.
[[nodiscard]] std::unique_ptr<PeerMemory> make_peer_memory(Device& device, Context& context, std::size_t bytes,
                                                           int ranks, double deadline, bool apart);

}  // namespace concord::opencl
