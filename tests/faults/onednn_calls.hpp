// What the functions that stand in for oneDNN's share.
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <string_view>

#include "faults/faults.hpp"
#include "faults/next_function.hpp"

namespace concord::faults {

#if DNNL_VERSION_MAJOR >= 3
using MemoryDesc = const_dnnl_memory_desc_t;
#else
using MemoryDesc = const dnnl_memory_desc_t*;
#endif

/// A call that makes an object.
template <class Call>
dnnl_status_t making(Kind kind, Object object, const char* name, const Call& call, std::string_view of = {}) {
  if (const auto fault = refused(kind, name, of)) return static_cast<dnnl_status_t>(*fault);
  const dnnl_status_t status = call();
  if (status == dnnl_success) count(object, 1);
  return status;
}

template <class Call>
dnnl_status_t doing(Kind kind, const char* name, const Call& call, std::string_view of = {}) {
  if (const auto fault = refused(kind, name, of)) return static_cast<dnnl_status_t>(*fault);
  return call();
}

template <class Raw>
dnnl_status_t releasing(Object object, dnnl_status_t (*next)(Raw), Raw raw) {
  if (raw != nullptr) count(object, -1);
  return next(raw);
}

/// "convolution", "reorder", …
[[nodiscard]] std::string_view kind_of(const_dnnl_primitive_desc_t description);

}  // namespace concord::faults
