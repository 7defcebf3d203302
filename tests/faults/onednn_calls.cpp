// The functions of oneDNN that make, run and release what a program holds: engine, stream, primitives, memory objects.
#include "faults/onednn_calls.hpp"

#include <oneapi/dnnl/dnnl_debug.h>

namespace concord::faults {
namespace {

std::string_view kind_of_primitive(const_dnnl_primitive_t primitive) {
  const_dnnl_primitive_desc_t description = nullptr;
  if (dnnl_primitive_get_primitive_desc(primitive, &description) != dnnl_success) return "a primitive";
  return kind_of(description);
}

}  // namespace

// What this asks itself is not counted: the library's own function is called.
std::string_view kind_of(const_dnnl_primitive_desc_t description) {
  static auto* const next = next_function<decltype(dnnl_primitive_desc_query)>("dnnl_primitive_desc_query");
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  if (next(description, dnnl_query_primitive_kind, 0, &kind) != dnnl_success) return "a primitive";
  return dnnl_prim_kind2str(kind);
}

}  // namespace concord::faults

using namespace concord::faults;

extern "C" {

dnnl_status_t dnnl_engine_create(dnnl_engine_t* engine, dnnl_engine_kind_t kind, size_t index) {
  static auto* const next = next_function<decltype(dnnl_engine_create)>("dnnl_engine_create");
  return doing(Kind::open, "dnnl_engine_create", [&] { return next(engine, kind, index); });
}

dnnl_status_t dnnl_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine, unsigned flags) {
  static auto* const next = next_function<decltype(dnnl_stream_create)>("dnnl_stream_create");
  return doing(Kind::open, "dnnl_stream_create", [&] { return next(stream, engine, flags); });
}

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
  return making(
      Kind::primitive, Object::primitive, "dnnl_primitive_create", [&] { return next(primitive, desc); },
      kind_of(desc));
}

dnnl_status_t dnnl_primitive_destroy(dnnl_primitive_t primitive) {
  static auto* const next = next_function<decltype(dnnl_primitive_destroy)>("dnnl_primitive_destroy");
  return releasing(Object::primitive, next, primitive);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int arguments,
                                     const dnnl_exec_arg_t* list) {
  static auto* const next = next_function<decltype(dnnl_primitive_execute)>("dnnl_primitive_execute");
  return doing(
      Kind::execution, "dnnl_primitive_execute", [&] { return next(primitive, stream, arguments, list); },
      kind_of_primitive(primitive));
}

}  // extern "C"
