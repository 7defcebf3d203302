// Tensors and operations as oneDNN 2.6 has them described: an operation is initialised, then an implementation is
// searched for by an iterator. oneDNN 3 has a function for each kind of primitive in their place
// (onednn_descriptions.cpp).
#include "faults/onednn_calls.hpp"

#if DNNL_VERSION_MAJOR < 3

#include <oneapi/dnnl/dnnl_debug.h>

using namespace concord::faults;

namespace {

/// "convolution": every description begins with the kind.
std::string_view kind_of_operation(const_dnnl_op_desc_t operation) {
  return dnnl_prim_kind2str(*static_cast<const dnnl_primitive_kind_t*>(operation));
}

}  // namespace

extern "C" {

dnnl_status_t dnnl_memory_desc_init_by_strides(dnnl_memory_desc_t* desc, int rank, const dnnl_dims_t dims,
                                               dnnl_data_type_t type, const dnnl_dims_t strides) {
  static auto* const next =
      next_function<decltype(dnnl_memory_desc_init_by_strides)>("dnnl_memory_desc_init_by_strides");
  return doing(Kind::description, "dnnl_memory_desc_init_by_strides",
               [&] { return next(desc, rank, dims, type, strides); });
}

dnnl_status_t dnnl_memory_desc_init_by_tag(dnnl_memory_desc_t* desc, int rank, const dnnl_dims_t dims,
                                           dnnl_data_type_t type, dnnl_format_tag_t tag) {
  static auto* const next = next_function<decltype(dnnl_memory_desc_init_by_tag)>("dnnl_memory_desc_init_by_tag");
  return doing(Kind::description, "dnnl_memory_desc_init_by_tag", [&] { return next(desc, rank, dims, type, tag); });
}

dnnl_status_t dnnl_memory_desc_permute_axes(dnnl_memory_desc_t* out, const dnnl_memory_desc_t* in, const int* places) {
  static auto* const next = next_function<decltype(dnnl_memory_desc_permute_axes)>("dnnl_memory_desc_permute_axes");
  return doing(Kind::description, "dnnl_memory_desc_permute_axes", [&] { return next(out, in, places); });
}

dnnl_status_t dnnl_dilated_convolution_forward_desc_init(dnnl_convolution_desc_t* desc, dnnl_prop_kind_t prop,
                                                         dnnl_alg_kind_t algorithm, const dnnl_memory_desc_t* src,
                                                         const dnnl_memory_desc_t* weights,
                                                         const dnnl_memory_desc_t* bias, const dnnl_memory_desc_t* dst,
                                                         const dnnl_dims_t strides, const dnnl_dims_t dilation,
                                                         const dnnl_dims_t before, const dnnl_dims_t after) {
  constexpr const char* kName = "dnnl_dilated_convolution_forward_desc_init";
  static auto* const next = next_function<decltype(dnnl_dilated_convolution_forward_desc_init)>(kName);
  return doing(Kind::description, kName,
               [&] { return next(desc, prop, algorithm, src, weights, bias, dst, strides, dilation, before, after); });
}

dnnl_status_t dnnl_dilated_convolution_backward_data_desc_init(dnnl_convolution_desc_t* desc, dnnl_alg_kind_t algorithm,
                                                               const dnnl_memory_desc_t* diff_src,
                                                               const dnnl_memory_desc_t* weights,
                                                               const dnnl_memory_desc_t* diff_dst,
                                                               const dnnl_dims_t strides, const dnnl_dims_t dilation,
                                                               const dnnl_dims_t before, const dnnl_dims_t after) {
  constexpr const char* kName = "dnnl_dilated_convolution_backward_data_desc_init";
  static auto* const next = next_function<decltype(dnnl_dilated_convolution_backward_data_desc_init)>(kName);
  return doing(Kind::description, kName,
               [&] { return next(desc, algorithm, diff_src, weights, diff_dst, strides, dilation, before, after); });
}

dnnl_status_t dnnl_dilated_convolution_backward_weights_desc_init(
    dnnl_convolution_desc_t* desc, dnnl_alg_kind_t algorithm, const dnnl_memory_desc_t* src,
    const dnnl_memory_desc_t* diff_weights, const dnnl_memory_desc_t* diff_bias, const dnnl_memory_desc_t* diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilation, const dnnl_dims_t before, const dnnl_dims_t after) {
  constexpr const char* kName = "dnnl_dilated_convolution_backward_weights_desc_init";
  static auto* const next = next_function<decltype(dnnl_dilated_convolution_backward_weights_desc_init)>(kName);
  return doing(Kind::description, kName, [&] {
    return next(desc, algorithm, src, diff_weights, diff_bias, diff_dst, strides, dilation, before, after);
  });
}

dnnl_status_t dnnl_matmul_desc_init(dnnl_matmul_desc_t* desc, const dnnl_memory_desc_t* src,
                                    const dnnl_memory_desc_t* weights, const dnnl_memory_desc_t* bias,
                                    const dnnl_memory_desc_t* dst) {
  static auto* const next = next_function<decltype(dnnl_matmul_desc_init)>("dnnl_matmul_desc_init");
  return doing(Kind::description, "dnnl_matmul_desc_init", [&] { return next(desc, src, weights, bias, dst); });
}

dnnl_status_t dnnl_batch_normalization_forward_desc_init(dnnl_batch_normalization_desc_t* desc, dnnl_prop_kind_t prop,
                                                         const dnnl_memory_desc_t* data, float epsilon,
                                                         unsigned flags) {
  constexpr const char* kName = "dnnl_batch_normalization_forward_desc_init";
  static auto* const next = next_function<decltype(dnnl_batch_normalization_forward_desc_init)>(kName);
  return doing(Kind::description, kName, [&] { return next(desc, prop, data, epsilon, flags); });
}

dnnl_status_t dnnl_batch_normalization_backward_desc_init(dnnl_batch_normalization_desc_t* desc, dnnl_prop_kind_t prop,
                                                          const dnnl_memory_desc_t* diff_data,
                                                          const dnnl_memory_desc_t* data, float epsilon,
                                                          unsigned flags) {
  constexpr const char* kName = "dnnl_batch_normalization_backward_desc_init";
  static auto* const next = next_function<decltype(dnnl_batch_normalization_backward_desc_init)>(kName);
  return doing(Kind::description, kName, [&] { return next(desc, prop, diff_data, data, epsilon, flags); });
}

dnnl_status_t dnnl_softmax_v2_forward_desc_init(dnnl_softmax_v2_desc_t* desc, dnnl_prop_kind_t prop,
                                                dnnl_alg_kind_t algorithm, const dnnl_memory_desc_t* src,
                                                const dnnl_memory_desc_t* dst, int axis) {
  constexpr const char* kName = "dnnl_softmax_v2_forward_desc_init";
  static auto* const next = next_function<decltype(dnnl_softmax_v2_forward_desc_init)>(kName);
  return doing(Kind::description, kName, [&] { return next(desc, prop, algorithm, src, dst, axis); });
}

dnnl_status_t dnnl_softmax_v2_backward_desc_init(dnnl_softmax_v2_desc_t* desc, dnnl_alg_kind_t algorithm,
                                                 const dnnl_memory_desc_t* diff_src, const dnnl_memory_desc_t* diff_dst,
                                                 const dnnl_memory_desc_t* dst, int axis) {
  constexpr const char* kName = "dnnl_softmax_v2_backward_desc_init";
  static auto* const next = next_function<decltype(dnnl_softmax_v2_backward_desc_init)>(kName);
  return doing(Kind::description, kName, [&] { return next(desc, algorithm, diff_src, diff_dst, dst, axis); });
}

dnnl_status_t dnnl_primitive_desc_iterator_create(dnnl_primitive_desc_iterator_t* iterator, const_dnnl_op_desc_t desc,
                                                  const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                                  const_dnnl_primitive_desc_t hint) {
  constexpr const char* kName = "dnnl_primitive_desc_iterator_create";
  static auto* const next = next_function<decltype(dnnl_primitive_desc_iterator_create)>(kName);
  return making(
      Kind::description, Object::description, kName, [&] { return next(iterator, desc, attributes, engine, hint); },
      kind_of_operation(desc));
}

/// A failure is a null pointer, whatever the fault's status says.
dnnl_primitive_desc_t dnnl_primitive_desc_iterator_fetch(const_dnnl_primitive_desc_iterator_t iterator) {
  constexpr const char* kName = "dnnl_primitive_desc_iterator_fetch";
  static auto* const next = next_function<decltype(dnnl_primitive_desc_iterator_fetch)>(kName);
  if (refused(Kind::description, kName)) return nullptr;
  dnnl_primitive_desc_t const found = next(iterator);
  if (found != nullptr) count(Object::description, 1);
  return found;
}

dnnl_status_t dnnl_primitive_desc_iterator_destroy(dnnl_primitive_desc_iterator_t iterator) {
  static auto* const next =
      next_function<decltype(dnnl_primitive_desc_iterator_destroy)>("dnnl_primitive_desc_iterator_destroy");
  return releasing(Object::description, next, iterator);
}

dnnl_status_t dnnl_reorder_primitive_desc_create(dnnl_primitive_desc_t* made, const dnnl_memory_desc_t* src,
                                                 dnnl_engine_t src_engine, const dnnl_memory_desc_t* dst,
                                                 dnnl_engine_t dst_engine, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_reorder_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_reorder_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, src, src_engine, dst, dst_engine, attributes); });
}

}  // extern "C"

#endif
