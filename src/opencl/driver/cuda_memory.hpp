// CudaMemory: memory of an NVIDIA GPU that can be given to other processes and devices. NVIDIA's OpenCL imports such
// memory but cannot make it, so CUDA's driver library, which is installed with every driver, allocates it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "concord/core/open_file.hpp"

namespace concord::opencl {

class CudaMemory {
 public:
  /// Allocates at least `bytes` on the GPU at this PCI address ("00000000:3B:00.0"). Returns null if there is no CUDA
  /// driver or the GPU cannot export memory; `why` then says so. Throws OutOfMemory.
  [[nodiscard]] static std::unique_ptr<CudaMemory> make(const std::string& pci_address, std::size_t bytes,
                                                        std::string& why);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory();

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The descriptor of the memory. It belongs to this object.
  [[nodiscard]] int file() const { return file_.get(); }

 private:
  CudaMemory(unsigned long long handle, std::size_t bytes, OpenFile file)
      : handle_(handle), bytes_(bytes), file_(std::move(file)) {}

  unsigned long long handle_;
  std::size_t bytes_;
  OpenFile file_;
};

}  // namespace concord::opencl
