// The functions of oneDNN that make and release objects, or can fail while a network trains.
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#include "faults/faults.hpp"
#include "faults/next_function.hpp"

namespace concord::faults {
namespace {

template <class Call>
dnnl_status_t making(Kind kind, Object object, const char* name, const Call& call) {
  if (const auto fault = refused(kind, name)) return static_cast<dnnl_status_t>(*fault);
  const dnnl_status_t status = call();
  if (status == dnnl_success) count(object, 1);
  return status;
}

template <class Raw>
dnnl_status_t releasing(Object object, dnnl_status_t (*next)(Raw), Raw raw) {
  if (raw != nullptr) count(object, -1);
  return next(raw);
}

#if DNNL_VERSION_MAJOR >= 3
using MemoryDesc = const_dnnl_memory_desc_t;
#else
using MemoryDesc = const dnnl_memory_desc_t*;
#endif

}  // namespace
}  // namespace concord::faults

using namespace concord::faults;

extern "C" {

dnnl_status_t dnnl_memory_create(dnnl_memory_t* memory, MemoryDesc desc, dnnl_engine_t engine, void* handle) {
  static auto* const next = next_function<decltype(dnnl_memory_create)>("dnnl_memory_create");
  return making(Kind::memory, Object::host_memory, "dnnl_memory_create",
                [&] { return next(memory, desc, engine, handle); });
}

dnnl_status_t dnnl_memory_destroy(dnnl_memory_t memory) {
  static auto* const next = next_function<decltype(dnnl_memory_destroy)>("dnnl_memory_destroy");
  return releasing(Object::host_memory, next, memory);
}

dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive, const_dnnl_primitive_desc_t desc) {
  static auto* const next = next_function<decltype(dnnl_primitive_create)>("dnnl_primitive_create");
  return making(Kind::primitive, Object::primitive, "dnnl_primitive_create", [&] { return next(primitive, desc); });
}

dnnl_status_t dnnl_primitive_destroy(dnnl_primitive_t primitive) {
  static auto* const next = next_function<decltype(dnnl_primitive_destroy)>("dnnl_primitive_destroy");
  return releasing(Object::primitive, next, primitive);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t* arguments) {
  static auto* const next = next_function<decltype(dnnl_primitive_execute)>("dnnl_primitive_execute");
  if (const auto fault = refused(Kind::execution, "dnnl_primitive_execute")) return static_cast<dnnl_status_t>(*fault);
  return next(primitive, stream, count, arguments);
}

// oneDNN 3 has a function for each kind of primitive in its place.
#if DNNL_VERSION_MAJOR < 3
dnnl_status_t dnnl_primitive_desc_iterator_create(dnnl_primitive_desc_iterator_t* iterator, const_dnnl_op_desc_t desc,
                                                  const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                                  const_dnnl_primitive_desc_t hint) {
  static auto* const next =
      next_function<decltype(dnnl_primitive_desc_iterator_create)>("dnnl_primitive_desc_iterator_create");
  return making(Kind::primitive, Object::description, "dnnl_primitive_desc_iterator_create",
                [&] { return next(iterator, desc, attributes, engine, hint); });
}

dnnl_status_t dnnl_primitive_desc_iterator_destroy(dnnl_primitive_desc_iterator_t iterator) {
  static auto* const next =
      next_function<decltype(dnnl_primitive_desc_iterator_destroy)>("dnnl_primitive_desc_iterator_destroy");
  return releasing(Object::description, next, iterator);
}
#endif

}  // extern "C"
