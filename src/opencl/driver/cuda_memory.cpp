// The few functions of CUDA's driver interface that allocate exportable memory, found at run time. Types and numbers
// are those of the CUDA driver API, "Virtual Memory Management" (CUDA 10.2 and later).
#include "concord/opencl/driver/cuda_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "concord/core/check.hpp"

namespace concord::opencl {
namespace {

constexpr int kOutOfMemory = 2;     // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kPinned = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED: ordinary memory of the device
constexpr int kFileDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kOnDevice = 1;        // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kRecommended = 1;     // CU_MEM_ALLOC_GRANULARITY_RECOMMENDED

struct AllocationProperties {  // CUmemAllocationProp
  int type = kPinned;
  int handle_types = kFileDescriptor;
  int location_type = kOnDevice;
  int location_id = 0;
  void* windows_data = nullptr;
  unsigned char flags[8] = {};
};
static_assert(sizeof(AllocationProperties) == 32);

using MemoryNumber = unsigned long long;

/// Functions of libcuda.so.1; null where there is no such library.
struct Cuda {
  int (*init)(unsigned flags) = nullptr;
  int (*device_at)(int* device, const char* pci_address) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*set_context)(void* context) = nullptr;
  int (*granularity)(std::size_t* bytes, const AllocationProperties* properties, int option) = nullptr;
  int (*create)(MemoryNumber* handle, std::size_t bytes, const AllocationProperties* properties,
                MemoryNumber flags) = nullptr;
  int (*release)(MemoryNumber handle) = nullptr;
  int (*export_handle)(void* result, MemoryNumber handle, int type, MemoryNumber flags) = nullptr;
  bool is_complete = false;

  Cuda() {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays until the process ends
    if (library == nullptr) return;
    is_complete = find(library, init, "cuInit") && find(library, device_at, "cuDeviceGetByPCIBusId") &&
                  find(library, retain_context, "cuDevicePrimaryCtxRetain") &&
                  find(library, set_context, "cuCtxSetCurrent") &&
                  find(library, granularity, "cuMemGetAllocationGranularity") && find(library, create, "cuMemCreate") &&
                  find(library, release, "cuMemRelease") &&
                  find(library, export_handle, "cuMemExportToShareableHandle") && init(0) == 0;
  }

  template <class Function>
  static bool find(void* library, Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    return function != nullptr;
  }
};

const Cuda& cuda() {
  static const Cuda functions;
  return functions;
}

}  // namespace

std::unique_ptr<CudaMemory> CudaMemory::make(const std::string& pci_address, std::size_t bytes, std::string& why) {
  const Cuda& driver = cuda();
  const auto refuse = [&](std::string reason) {
    why = std::move(reason);
    return nullptr;
  };
  if (!driver.is_complete) return refuse("libcuda.so.1 is not there or too old");
  AllocationProperties properties;
  void* context = nullptr;
  if (driver.device_at(&properties.location_id, pci_address.c_str()) != 0) {
    return refuse("CUDA does not know the GPU at " + pci_address);
  }
  if (driver.retain_context(&context, properties.location_id) != 0 || driver.set_context(context) != 0) {
    return refuse("CUDA opens no context");
  }
  std::size_t unit = 0;
  if (driver.granularity(&unit, &properties, kRecommended) != 0 || unit == 0) {
    return refuse("the GPU does not export memory");
  }
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  MemoryNumber handle = 0;
  const int status = driver.create(&handle, whole, &properties, 0);
  CONCORD_CHECK(status != kOutOfMemory, OutOfMemory, "the GPU has no {} MiB to exchange with other GPUs", whole >> 20);
  if (status != 0) return refuse(fmt::format("cuMemCreate returned {}", status));
  int file = -1;
  if (const int error = driver.export_handle(&file, handle, kFileDescriptor, 0); error != 0) {
    driver.release(handle);
    return refuse(fmt::format("cuMemExportToShareableHandle returned {}", error));
  }
  return std::unique_ptr<CudaMemory>(new CudaMemory(handle, whole, OpenFile(file)));
}

CudaMemory::~CudaMemory() { cuda().release(handle_); }

}  // namespace concord::opencl
