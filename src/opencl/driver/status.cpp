// The names of the OpenCL 1.2 status codes, and of the codes that the ICD loader and NVIDIA's driver add.
#include "concord/opencl/driver/status.hpp"

#include <array>

#include "concord/core/check.hpp"

namespace concord::opencl {
namespace {

struct StatusName {
  cl_int status;
  std::string_view name;
};

constexpr std::array kStatusNames{
    StatusName{0, "CL_SUCCESS"},
    StatusName{-1, "CL_DEVICE_NOT_FOUND"},
    StatusName{-2, "CL_DEVICE_NOT_AVAILABLE"},
    StatusName{-3, "CL_COMPILER_NOT_AVAILABLE"},
    StatusName{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    StatusName{-5, "CL_OUT_OF_RESOURCES"},
    StatusName{-6, "CL_OUT_OF_HOST_MEMORY"},
    StatusName{-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    StatusName{-8, "CL_MEM_COPY_OVERLAP"},
    StatusName{-9, "CL_IMAGE_FORMAT_MISMATCH"},
    StatusName{-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
    StatusName{-11, "CL_BUILD_PROGRAM_FAILURE"},
    StatusName{-12, "CL_MAP_FAILURE"},
    StatusName{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    StatusName{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    StatusName{-15, "CL_COMPILE_PROGRAM_FAILURE"},
    StatusName{-16, "CL_LINKER_NOT_AVAILABLE"},
    StatusName{-17, "CL_LINK_PROGRAM_FAILURE"},
    StatusName{-18, "CL_DEVICE_PARTITION_FAILED"},
    StatusName{-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
    StatusName{-30, "CL_INVALID_VALUE"},
    StatusName{-31, "CL_INVALID_DEVICE_TYPE"},
    StatusName{-32, "CL_INVALID_PLATFORM"},
    StatusName{-33, "CL_INVALID_DEVICE"},
    StatusName{-34, "CL_INVALID_CONTEXT"},
    StatusName{-35, "CL_INVALID_QUEUE_PROPERTIES"},
    StatusName{-36, "CL_INVALID_COMMAND_QUEUE"},
    StatusName{-37, "CL_INVALID_HOST_PTR"},
    StatusName{-38, "CL_INVALID_MEM_OBJECT"},
    StatusName{-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
    StatusName{-40, "CL_INVALID_IMAGE_SIZE"},
    StatusName{-41, "CL_INVALID_SAMPLER"},
    StatusName{-42, "CL_INVALID_BINARY"},
    StatusName{-43, "CL_INVALID_BUILD_OPTIONS"},
    StatusName{-44, "CL_INVALID_PROGRAM"},
    StatusName{-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    StatusName{-46, "CL_INVALID_KERNEL_NAME"},
    StatusName{-47, "CL_INVALID_KERNEL_DEFINITION"},
    StatusName{-48, "CL_INVALID_KERNEL"},
    StatusName{-49, "CL_INVALID_ARG_INDEX"},
    StatusName{-50, "CL_INVALID_ARG_VALUE"},
    StatusName{-51, "CL_INVALID_ARG_SIZE"},
    StatusName{-52, "CL_INVALID_KERNEL_ARGS"},
    StatusName{-53, "CL_INVALID_WORK_DIMENSION"},
    StatusName{-54, "CL_INVALID_WORK_GROUP_SIZE"},
    StatusName{-55, "CL_INVALID_WORK_ITEM_SIZE"},
    StatusName{-56, "CL_INVALID_GLOBAL_OFFSET"},
    StatusName{-57, "CL_INVALID_EVENT_WAIT_LIST"},
    StatusName{-58, "CL_INVALID_EVENT"},
    StatusName{-59, "CL_INVALID_OPERATION"},
    StatusName{-61, "CL_INVALID_BUFFER_SIZE"},
    StatusName{-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    StatusName{-64, "CL_INVALID_PROPERTY"},
    StatusName{-66, "CL_INVALID_COMPILER_OPTIONS"},
    StatusName{-67, "CL_INVALID_LINKER_OPTIONS"},
    StatusName{-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    StatusName{-9999, "illegal memory access in a kernel (NVIDIA)"},
};

std::string message(cl_int status, std::string_view call, std::string_view device, std::string_view what_to_do) {
  return fmt::format("{} failed on {}: {} ({}). {}", call, device, status_name(status), status, what_to_do);
}

}  // namespace

std::string_view status_name(cl_int status) {
  for (const StatusName& row : kStatusNames) {
    if (row.status == status) return row.name;
  }
  return "unknown OpenCL error";
}

std::string_view advice(cl_int status) {
  constexpr cl_int kIllegalAccess = -9999;
  switch (status) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY: return "Use a smaller batch, or close other programs that use memory";
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_OUT_OF_RESOURCES:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case kIllegalAccess:
      return "The device may be lost, or out of memory: open it again or use a smaller batch; `concord doctor` tests "
             "it";
    default: return "`concord doctor` tests the device and its driver";
  }
}

bool is_memory_failure(cl_int status) {
  return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY;
}

void check(cl_int status, std::string_view call, std::string_view device) {
  if (status == CL_SUCCESS) return;
  const std::string text = message(status, call, device, advice(status));
  if (is_memory_failure(status)) throw OutOfMemory(text);
  throw DeviceError(text);
}

void check_allocation(cl_int status, std::string_view call, std::string_view device) {
  if (status != CL_OUT_OF_RESOURCES) return check(status, call, device);
  throw OutOfMemory(message(status, call, device, advice(CL_MEM_OBJECT_ALLOCATION_FAILURE)));
}

}  // namespace concord::opencl
