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

template <class Call>
cl_int listing(const char* name, const Call& call) {
  if (const auto fault = refused(Kind::query, name)) return *fault;
  return call();
}

}  // namespace

extern "C" {

cl_int clGetPlatformIDs(cl_uint places, cl_platform_id* ids, cl_uint* count) {
  static auto* const next = next_function<decltype(clGetPlatformIDs)>("clGetPlatformIDs");
  return listing("clGetPlatformIDs", [&] { return next(places, ids, count); });
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t bytes, void* value, size_t* needed) {
  static auto* const next = next_function<decltype(clGetPlatformInfo)>("clGetPlatformInfo");
  return asking("clGetPlatformInfo", what, [&] { return next(platform, what, bytes, value, needed); });
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint places, cl_device_id* ids, cl_uint* count) {
  static auto* const next = next_function<decltype(clGetDeviceIDs)>("clGetDeviceIDs");
  return listing("clGetDeviceIDs", [&] { return next(platform, type, places, ids, count); });
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
