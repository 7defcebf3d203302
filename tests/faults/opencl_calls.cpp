// The functions of OpenCL that make, retain and release objects, or can fail while a network trains.
#include <CL/cl.h>

#include "faults/faults.hpp"
#include "faults/next_function.hpp"

namespace concord::faults {
namespace {

/// A call that makes an object; `call` gets the place for the status.
template <class Call>
auto making(Kind kind, Object object, const char* name, cl_int* status, const Call& call) -> decltype(call(status)) {
  if (const auto fault = refused(kind, name)) {
    if (status != nullptr) *status = *fault;
    return nullptr;
  }
  const auto made = call(status);
  if (made != nullptr) count(object, 1);
  return made;
}

/// A call that gives a status; one that enqueues gives the event that it makes, if its caller wants it.
template <class Call>
cl_int doing(Kind kind, const char* name, const Call& call, const cl_event* event = nullptr) {
  if (const auto fault = refused(kind, name)) return *fault;
  const cl_int status = call();
  if (status == CL_SUCCESS && event != nullptr) count(Object::event, 1);
  return status;
}

/// A call that waits. One that fails has waited all the same: drivers say that a device is lost when its commands have
/// ended. Else they would go on in PoCL's threads, with host memory that is freed because nothing runs any more.
template <class Call>
cl_int waiting(const char* name, const Call& call) {
  const cl_int status = call();
  return refused(Kind::wait, name).value_or(status);
}

cl_int counted(Object object, int change, cl_int status) {
  if (status == CL_SUCCESS) count(object, change);
  return status;
}

}  // namespace
}  // namespace concord::faults

using namespace concord::faults;

extern "C" {

cl_context clCreateContext(const cl_context_properties* properties, cl_uint devices, const cl_device_id* ids,
                           void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data,
                           cl_int* status) {
  static auto* const next = next_function<decltype(clCreateContext)>("clCreateContext");
  return making(Kind::open, Object::context, "clCreateContext", status,
                [&](cl_int* s) { return next(properties, devices, ids, notify, data, s); });
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int* status) {
  static auto* const next = next_function<decltype(clCreateCommandQueue)>("clCreateCommandQueue");
  return making(Kind::open, Object::queue, "clCreateCommandQueue", status,
                [&](cl_int* s) { return next(context, device, properties, s); });
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* status) {
  static auto* const next = next_function<decltype(clCreateBuffer)>("clCreateBuffer");
  return making(Kind::allocation, Object::memory, "clCreateBuffer", status,
                [&](cl_int* s) { return next(context, flags, bytes, host, s); });
}

cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* info,
                         cl_int* status) {
  static auto* const next = next_function<decltype(clCreateSubBuffer)>("clCreateSubBuffer");
  return making(Kind::allocation, Object::memory, "clCreateSubBuffer", status,
                [&](cl_int* s) { return next(buffer, flags, type, info, s); });
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint strings, const char** text, const size_t* bytes,
                                     cl_int* status) {
  static auto* const next = next_function<decltype(clCreateProgramWithSource)>("clCreateProgramWithSource");
  return making(Kind::build, Object::program, "clCreateProgramWithSource", status,
                [&](cl_int* s) { return next(context, strings, text, bytes, s); });
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint devices, const cl_device_id* ids, const size_t* bytes,
                                     const unsigned char** binaries, cl_int* loaded, cl_int* status) {
  static auto* const next = next_function<decltype(clCreateProgramWithBinary)>("clCreateProgramWithBinary");
  return making(Kind::build, Object::program, "clCreateProgramWithBinary", status,
                [&](cl_int* s) { return next(context, devices, ids, bytes, binaries, loaded, s); });
}

cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* status) {
  static auto* const next = next_function<decltype(clCreateKernel)>("clCreateKernel");
  return making(Kind::build, Object::kernel, "clCreateKernel", status,
                [&](cl_int* s) { return next(program, name, s); });
}

cl_int clBuildProgram(cl_program program, cl_uint devices, const cl_device_id* ids, const char* options,
                      void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  static auto* const next = next_function<decltype(clBuildProgram)>("clBuildProgram");
  return doing(Kind::build, "clBuildProgram", [&] { return next(program, devices, ids, options, notify, data); });
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
  static auto* const next = next_function<decltype(clSetKernelArg)>("clSetKernelArg");
  return doing(Kind::argument, "clSetKernelArg", [&] { return next(kernel, index, bytes, value); });
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint waits, const cl_event* list,
                              cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  return doing(
      Kind::enqueue, "clEnqueueNDRangeKernel",
      [&] { return next(queue, kernel, dimensions, offset, global, local, waits, list, event); }, event);
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t pattern_bytes,
                           size_t offset, size_t bytes, cl_uint waits, const cl_event* list, cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueFillBuffer)>("clEnqueueFillBuffer");
  return doing(
      Kind::enqueue, "clEnqueueFillBuffer",
      [&] { return next(queue, buffer, pattern, pattern_bytes, offset, bytes, waits, list, event); }, event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueMarkerWithWaitList)>("clEnqueueMarkerWithWaitList");
  return doing(
      Kind::enqueue, "clEnqueueMarkerWithWaitList", [&] { return next(queue, waits, list, event); }, event);
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueBarrierWithWaitList)>("clEnqueueBarrierWithWaitList");
  return doing(
      Kind::enqueue, "clEnqueueBarrierWithWaitList", [&] { return next(queue, waits, list, event); }, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                           void* host, cl_uint waits, const cl_event* list, cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
  return doing(
      Kind::copy, "clEnqueueReadBuffer",
      [&] { return next(queue, buffer, blocking, offset, bytes, host, waits, list, event); }, event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                            const void* host, cl_uint waits, const cl_event* list, cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer");
  return doing(
      Kind::copy, "clEnqueueWriteBuffer",
      [&] { return next(queue, buffer, blocking, offset, bytes, host, waits, list, event); }, event);
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                           size_t bytes, cl_uint waits, const cl_event* list, cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueCopyBuffer)>("clEnqueueCopyBuffer");
  return doing(
      Kind::copy, "clEnqueueCopyBuffer",
      [&] { return next(queue, from, to, from_offset, to_offset, bytes, waits, list, event); }, event);
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                         size_t bytes, cl_uint waits, const cl_event* list, cl_event* event, cl_int* status) {
  static auto* const next = next_function<decltype(clEnqueueMapBuffer)>("clEnqueueMapBuffer");
  if (const auto fault = refused(Kind::allocation, "clEnqueueMapBuffer")) {
    if (status != nullptr) *status = *fault;
    return nullptr;
  }
  void* const mapped = next(queue, buffer, blocking, flags, offset, bytes, waits, list, event, status);
  if (mapped != nullptr && event != nullptr) count(Object::event, 1);
  return mapped;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint waits, const cl_event* list,
                               cl_event* event) {
  static auto* const next = next_function<decltype(clEnqueueUnmapMemObject)>("clEnqueueUnmapMemObject");
  return doing(
      Kind::allocation, "clEnqueueUnmapMemObject", [&] { return next(queue, memory, mapped, waits, list, event); },
      event);
}

cl_int clFinish(cl_command_queue queue) {
  static auto* const next = next_function<decltype(clFinish)>("clFinish");
  return waiting("clFinish", [&] { return next(queue); });
}

cl_int clFlush(cl_command_queue queue) {
  static auto* const next = next_function<decltype(clFlush)>("clFlush");
  return waiting("clFlush", [&] { return next(queue); });
}

cl_int clWaitForEvents(cl_uint events, const cl_event* list) {
  static auto* const next = next_function<decltype(clWaitForEvents)>("clWaitForEvents");
  return waiting("clWaitForEvents", [&] { return next(events, list); });
}

cl_int clRetainContext(cl_context context) {
  static auto* const next = next_function<decltype(clRetainContext)>("clRetainContext");
  return counted(Object::context, 1, next(context));
}

cl_int clReleaseContext(cl_context context) {
  static auto* const next = next_function<decltype(clReleaseContext)>("clReleaseContext");
  return counted(Object::context, -1, next(context));
}

cl_int clRetainCommandQueue(cl_command_queue queue) {
  static auto* const next = next_function<decltype(clRetainCommandQueue)>("clRetainCommandQueue");
  return counted(Object::queue, 1, next(queue));
}

cl_int clReleaseCommandQueue(cl_command_queue queue) {
  static auto* const next = next_function<decltype(clReleaseCommandQueue)>("clReleaseCommandQueue");
  return counted(Object::queue, -1, next(queue));
}

cl_int clRetainMemObject(cl_mem memory) {
  static auto* const next = next_function<decltype(clRetainMemObject)>("clRetainMemObject");
  return counted(Object::memory, 1, next(memory));
}

cl_int clReleaseMemObject(cl_mem memory) {
  static auto* const next = next_function<decltype(clReleaseMemObject)>("clReleaseMemObject");
  return counted(Object::memory, -1, next(memory));
}

cl_int clRetainProgram(cl_program program) {
  static auto* const next = next_function<decltype(clRetainProgram)>("clRetainProgram");
  return counted(Object::program, 1, next(program));
}

cl_int clReleaseProgram(cl_program program) {
  static auto* const next = next_function<decltype(clReleaseProgram)>("clReleaseProgram");
  return counted(Object::program, -1, next(program));
}

cl_int clRetainKernel(cl_kernel kernel) {
  static auto* const next = next_function<decltype(clRetainKernel)>("clRetainKernel");
  return counted(Object::kernel, 1, next(kernel));
}

cl_int clReleaseKernel(cl_kernel kernel) {
  static auto* const next = next_function<decltype(clReleaseKernel)>("clReleaseKernel");
  return counted(Object::kernel, -1, next(kernel));
}

cl_int clRetainEvent(cl_event event) {
  static auto* const next = next_function<decltype(clRetainEvent)>("clRetainEvent");
  return counted(Object::event, 1, next(event));
}

cl_int clReleaseEvent(cl_event event) {
  static auto* const next = next_function<decltype(clReleaseEvent)>("clReleaseEvent");
  return counted(Object::event, -1, next(event));
}

}  // extern "C"
