// An OpenCL driver whose devices cannot be trained on: one is too old, one has no compiler, one is switched off, and
// one fails when it is opened. What else is asked of them is zero or empty.
#include <CL/cl_icd.h>

#include <array>
#include <cstring>
#include <string_view>

struct _cl_platform_id {
  const cl_icd_dispatch* dispatch;
};
struct _cl_device_id {
  const cl_icd_dispatch* dispatch;
  std::string_view name, version;
  cl_bool is_available, has_compiler;
};

namespace {

extern cl_icd_dispatch dispatch;

_cl_platform_id platform{&dispatch};
std::array<_cl_device_id, 4> devices{{{&dispatch, "Old One", "OpenCL 1.1 poor", CL_TRUE, CL_TRUE},
                                      {&dispatch, "Mute One", "OpenCL 1.2 poor", CL_TRUE, CL_FALSE},
                                      {&dispatch, "Switched Off", "OpenCL 1.2 poor", CL_FALSE, CL_TRUE},
                                      {&dispatch, "Stuck One", "OpenCL 1.2 poor", CL_TRUE, CL_TRUE}}};

cl_int give(const void* data, std::size_t bytes, std::size_t size, void* value, std::size_t* size_of_value) {
  if (size_of_value != nullptr) *size_of_value = bytes;
  if (value == nullptr) return CL_SUCCESS;
  if (size < bytes) return CL_INVALID_VALUE;
  std::memcpy(value, data, bytes);
  return CL_SUCCESS;
}

/// A literal's text, with the zero behind it.
cl_int give(std::string_view text, std::size_t size, void* value, std::size_t* size_of_value) {
  return give(text.data(), text.size() + 1, size, value, size_of_value);
}

cl_int CL_API_CALL get_platforms(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  if (count != nullptr) *count = 1;
  if (room > 0 && platforms != nullptr) *platforms = &platform;
  return CL_SUCCESS;
}

cl_int CL_API_CALL get_platform_info(cl_platform_id, cl_platform_info what, std::size_t size, void* value,
                                     std::size_t* size_of_value) {
  switch (what) {
    case CL_PLATFORM_NAME: return give("Poor Platform", size, value, size_of_value);
    case CL_PLATFORM_VENDOR: return give("a test", size, value, size_of_value);
    case CL_PLATFORM_VERSION: return give("OpenCL 1.2 poor", size, value, size_of_value);
    case CL_PLATFORM_PROFILE: return give("FULL_PROFILE", size, value, size_of_value);
    case CL_PLATFORM_EXTENSIONS: return give("cl_khr_icd", size, value, size_of_value);
    case CL_PLATFORM_ICD_SUFFIX_KHR: return give("POOR", size, value, size_of_value);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL get_devices(cl_platform_id, cl_device_type, cl_uint room, cl_device_id* found, cl_uint* count) {
  if (count != nullptr) *count = devices.size();
  for (std::size_t i = 0; found != nullptr && i < room && i < devices.size(); ++i) found[i] = &devices[i];
  return CL_SUCCESS;
}

cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, std::size_t size, void* value,
                                   std::size_t* size_of_value) {
  constexpr cl_bool kTrue = CL_TRUE;
  const cl_platform_id of = &platform;
  switch (what) {
    case CL_DEVICE_NAME: return give(device->name, size, value, size_of_value);
    case CL_DEVICE_VERSION: return give(device->version, size, value, size_of_value);
    case CL_DRIVER_VERSION: return give("0.1", size, value, size_of_value);
    case CL_DEVICE_AVAILABLE: return give(&device->is_available, sizeof(cl_bool), size, value, size_of_value);
    case CL_DEVICE_COMPILER_AVAILABLE: return give(&device->has_compiler, sizeof(cl_bool), size, value, size_of_value);
    case CL_DEVICE_ENDIAN_LITTLE: return give(&kTrue, sizeof kTrue, size, value, size_of_value);
    case CL_DEVICE_PLATFORM: return give(&of, sizeof of, size, value, size_of_value);
    default:
      if (size_of_value != nullptr) *size_of_value = 1;
      if (value != nullptr) std::memset(value, 0, size);
      return CL_SUCCESS;
  }
}

cl_context CL_API_CALL create_context(const cl_context_properties*, cl_uint, const cl_device_id*,
                                      void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*), void*,
                                      cl_int* status) {
  if (status != nullptr) *status = CL_DEVICE_NOT_AVAILABLE;
  return nullptr;
}

cl_icd_dispatch made_dispatch() {
  cl_icd_dispatch table{};
  table.clGetPlatformIDs = get_platforms;
  table.clGetPlatformInfo = get_platform_info;
  table.clGetDeviceIDs = get_devices;
  table.clGetDeviceInfo = get_device_info;
  table.clCreateContext = create_context;
  return table;
}

cl_icd_dispatch dispatch = made_dispatch();

}  // namespace

extern "C" {

cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  return get_platforms(room, platforms, count);
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what, std::size_t size, void* value,
                                     std::size_t* size_of_value) {
  return get_platform_info(id, what, size, value, size_of_value);
}

void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  const bool is_known = std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0;
  return is_known ? reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR) : nullptr;
}

}  // extern "C"
