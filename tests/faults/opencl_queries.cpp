// The functions of OpenCL that ask. One that fails answers nothing.
#include <CL/cl.h>
#include <fmt/format.h>

#include "faults/faults.hpp"
#include "faults/next_function.hpp"

using namespace concord::faults;

namespace {

/// `what` is asked: "clGetDeviceInfo of 0x102B".
template <class Call>
cl_int asking(const char* name, cl_uint what, const Call& call) {
  if (const auto fault = refused(Kind::query, name, fmt::format("0x{:04X}", what))) return *fault;
  return call();
}

cl_device_id only_device = nullptr;  // of OnlyDevice

template <class Call>
cl_int listing(const char* name, const Call& call) {
  if (const auto fault = refused(Kind::query, name)) return *fault;
  return call();
}

/// The one id as an answer of a function that lists.
template <class Id>
cl_int list_one(Id id, cl_uint places, Id* ids, cl_uint* count) {
  if (ids != nullptr && places > 0) *ids = id;
  if (count != nullptr) *count = 1;
  return CL_SUCCESS;
}

cl_platform_id platform_of(cl_device_id device) {
  static auto* const ask = next_function<decltype(clGetDeviceInfo)>("clGetDeviceInfo");
  cl_platform_id platform = nullptr;
  ask(device, CL_DEVICE_PLATFORM, sizeof platform, static_cast<void*>(&platform), nullptr);
  return platform;
}

}  // namespace

namespace concord::faults {

OnlyDevice::OnlyDevice(void* device) { only_device = static_cast<cl_device_id>(device); }
OnlyDevice::~OnlyDevice() { only_device = nullptr; }

}  // namespace concord::faults

extern "C" {

cl_int clGetPlatformIDs(cl_uint places, cl_platform_id* ids, cl_uint* count) {
  static auto* const next = next_function<decltype(clGetPlatformIDs)>("clGetPlatformIDs");
  return listing("clGetPlatformIDs", [&] {
    return only_device == nullptr ? next(places, ids, count) : list_one(platform_of(only_device), places, ids, count);
  });
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetPlatformInfo)>("clGetPlatformInfo");
  return asking("clGetPlatformInfo", what, [&] { return next(platform, what, bytes, value, needed); });
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint places, cl_device_id* ids, cl_uint* count) {
  static auto* const next = next_function<decltype(clGetDeviceIDs)>("clGetDeviceIDs");
  return listing("clGetDeviceIDs", [&] {
    return only_device == nullptr
               ? next(platform, type, places, ids, count)
               : list_one(only_device, places, ids, count);  // the library asks for those of any type
  });
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetDeviceInfo)>("clGetDeviceInfo");
  return asking("clGetDeviceInfo", what, [&] { return next(device, what, bytes, value, needed); });
}

cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetContextInfo)>("clGetContextInfo");
  return asking("clGetContextInfo", what, [&] { return next(context, what, bytes, value, needed); });
}

cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t bytes, void* value,
                             size_t* needed) {
  static auto* const next = next_function<decltype(clGetCommandQueueInfo)>("clGetCommandQueueInfo");
  return asking("clGetCommandQueueInfo", what, [&] { return next(queue, what, bytes, value, needed); });
}

cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetMemObjectInfo)>("clGetMemObjectInfo");
  return asking("clGetMemObjectInfo", what, [&] { return next(memory, what, bytes, value, needed); });
}

cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetProgramInfo)>("clGetProgramInfo");
  return asking("clGetProgramInfo", what, [&] { return next(program, what, bytes, value, needed); });
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info what, size_t bytes,
                             void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetProgramBuildInfo)>("clGetProgramBuildInfo");
  return asking("clGetProgramBuildInfo", what, [&] { return next(program, device, what, bytes, value, needed); });
}

cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetKernelInfo)>("clGetKernelInfo");
  return asking("clGetKernelInfo", what, [&] { return next(kernel, what, bytes, value, needed); });
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t bytes,
                                void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetKernelWorkGroupInfo)>("clGetKernelWorkGroupInfo");
  return asking("clGetKernelWorkGroupInfo", what, [&] { return next(kernel, device, what, bytes, value, needed); });
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetEventInfo)>("clGetEventInfo");
  return asking("clGetEventInfo", what, [&] { return next(event, what, bytes, value, needed); });
}

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetEventProfilingInfo)>("clGetEventProfilingInfo");
  return asking("clGetEventProfilingInfo", what, [&] { return next(event, what, bytes, value, needed); });
}

}  // extern "C"
