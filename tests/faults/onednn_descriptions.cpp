// The functions of oneDNN that describe: tensors, attributes, operations, and what an implementation of one says.
#include "faults/onednn_calls.hpp"

using namespace concord::faults;

extern "C" {

dnnl_status_t dnnl_primitive_attr_create(dnnl_primitive_attr_t* attributes) {
  static auto* const next = next_function<decltype(dnnl_primitive_attr_create)>("dnnl_primitive_attr_create");
  return making(Kind::description, Object::attribute, "dnnl_primitive_attr_create", [&] { return next(attributes); });
}

dnnl_status_t dnnl_primitive_attr_destroy(dnnl_primitive_attr_t attributes) {
  static auto* const next = next_function<decltype(dnnl_primitive_attr_destroy)>("dnnl_primitive_attr_destroy");
  return releasing(Object::attribute, next, attributes);
}

dnnl_status_t dnnl_primitive_attr_set_post_ops(dnnl_primitive_attr_t attributes, const_dnnl_post_ops_t post_ops) {
  static auto* const next =
      next_function<decltype(dnnl_primitive_attr_set_post_ops)>("dnnl_primitive_attr_set_post_ops");
  return doing(Kind::description, "dnnl_primitive_attr_set_post_ops", [&] { return next(attributes, post_ops); });
}

dnnl_status_t dnnl_post_ops_create(dnnl_post_ops_t* post_ops) {
  static auto* const next = next_function<decltype(dnnl_post_ops_create)>("dnnl_post_ops_create");
  return making(Kind::description, Object::attribute, "dnnl_post_ops_create", [&] { return next(post_ops); });
}

#if DNNL_VERSION_MAJOR >= 3
dnnl_status_t dnnl_post_ops_append_eltwise(dnnl_post_ops_t post_ops, dnnl_alg_kind_t algorithm, float alpha,
                                           float beta) {
  static auto* const next = next_function<decltype(dnnl_post_ops_append_eltwise)>("dnnl_post_ops_append_eltwise");
  return doing(Kind::description, "dnnl_post_ops_append_eltwise",
               [&] { return next(post_ops, algorithm, alpha, beta); });
}
#else
dnnl_status_t dnnl_post_ops_append_eltwise(dnnl_post_ops_t post_ops, float scale, dnnl_alg_kind_t algorithm,
                                           float alpha, float beta) {
  static auto* const next = next_function<decltype(dnnl_post_ops_append_eltwise)>("dnnl_post_ops_append_eltwise");
  return doing(Kind::description, "dnnl_post_ops_append_eltwise",
               [&] { return next(post_ops, scale, algorithm, alpha, beta); });
}
#endif

dnnl_status_t dnnl_post_ops_append_binary(dnnl_post_ops_t post_ops, dnnl_alg_kind_t algorithm, MemoryDesc operand) {
  static auto* const next = next_function<decltype(dnnl_post_ops_append_binary)>("dnnl_post_ops_append_binary");
  return doing(Kind::description, "dnnl_post_ops_append_binary", [&] { return next(post_ops, algorithm, operand); });
}

dnnl_status_t dnnl_post_ops_destroy(dnnl_post_ops_t post_ops) {
  static auto* const next = next_function<decltype(dnnl_post_ops_destroy)>("dnnl_post_ops_destroy");
  return releasing(Object::attribute, next, post_ops);
}

/// Of what is asked, the name of an implementation can fail; all else is there already.
dnnl_status_t dnnl_primitive_desc_query(const_dnnl_primitive_desc_t description, dnnl_query_t what, int index,
                                        void* result) {
  static auto* const next = next_function<decltype(dnnl_primitive_desc_query)>("dnnl_primitive_desc_query");
  const auto ask = [&] { return next(description, what, index, result); };
  if (what != dnnl_query_impl_info_str) return ask();
  return doing(Kind::description, "dnnl_primitive_desc_query", ask, kind_of(description));
}

dnnl_status_t dnnl_primitive_desc_destroy(dnnl_primitive_desc_t description) {
  static auto* const next = next_function<decltype(dnnl_primitive_desc_destroy)>("dnnl_primitive_desc_destroy");
  return releasing(Object::description, next, description);
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t dnnl_memory_desc_create_with_strides(dnnl_memory_desc_t* desc, int rank, const dnnl_dims_t dims,
                                                   dnnl_data_type_t type, const dnnl_dims_t strides) {
  static auto* const next =
      next_function<decltype(dnnl_memory_desc_create_with_strides)>("dnnl_memory_desc_create_with_strides");
  return doing(Kind::description, "dnnl_memory_desc_create_with_strides",
               [&] { return next(desc, rank, dims, type, strides); });
}

dnnl_status_t dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t* desc, int rank, const dnnl_dims_t dims,
                                               dnnl_data_type_t type, dnnl_format_tag_t tag) {
  static auto* const next =
      next_function<decltype(dnnl_memory_desc_create_with_tag)>("dnnl_memory_desc_create_with_tag");
  return doing(Kind::description, "dnnl_memory_desc_create_with_tag",
               [&] { return next(desc, rank, dims, type, tag); });
}

dnnl_status_t dnnl_memory_desc_clone(dnnl_memory_desc_t* copy, const_dnnl_memory_desc_t desc) {
  static auto* const next = next_function<decltype(dnnl_memory_desc_clone)>("dnnl_memory_desc_clone");
  return doing(Kind::description, "dnnl_memory_desc_clone", [&] { return next(copy, desc); });
}

dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t* made, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t algorithm,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides, const dnnl_dims_t dilation, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_convolution_forward_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_convolution_forward_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName, [&] {
    return next(made, engine, prop, algorithm, src, weights, bias, dst, strides, dilation, before, after, attributes);
  });
}

dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t* made, dnnl_engine_t engine, dnnl_alg_kind_t algorithm, const_dnnl_memory_desc_t diff_src,
    const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t diff_dst, const dnnl_dims_t strides,
    const dnnl_dims_t dilation, const dnnl_dims_t before, const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_convolution_backward_data_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_convolution_backward_data_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName, [&] {
    return next(made, engine, algorithm, diff_src, weights, diff_dst, strides, dilation, before, after, hint,
                attributes);
  });
}

dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t* made, dnnl_engine_t engine, dnnl_alg_kind_t algorithm, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t diff_weights, const_dnnl_memory_desc_t diff_bias, const_dnnl_memory_desc_t diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilation, const dnnl_dims_t before, const dnnl_dims_t after,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_convolution_backward_weights_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_convolution_backward_weights_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName, [&] {
    return next(made, engine, algorithm, src, diff_weights, diff_bias, diff_dst, strides, dilation, before, after, hint,
                attributes);
  });
}

dnnl_status_t dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t* made, dnnl_engine_t engine,
                                                const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
                                                const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
                                                const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_matmul_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_matmul_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, engine, src, weights, bias, dst, attributes); });
}

dnnl_status_t dnnl_batch_normalization_forward_primitive_desc_create(
    dnnl_primitive_desc_t* made, dnnl_engine_t engine, dnnl_prop_kind_t prop, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t dst, float epsilon, unsigned flags, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_batch_normalization_forward_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_batch_normalization_forward_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, engine, prop, src, dst, epsilon, flags, attributes); });
}

dnnl_status_t dnnl_batch_normalization_backward_primitive_desc_create(
    dnnl_primitive_desc_t* made, dnnl_engine_t engine, dnnl_prop_kind_t prop, const_dnnl_memory_desc_t diff_src,
    const_dnnl_memory_desc_t diff_dst, const_dnnl_memory_desc_t src, float epsilon, unsigned flags,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_batch_normalization_backward_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_batch_normalization_backward_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, engine, prop, diff_src, diff_dst, src, epsilon, flags, hint, attributes); });
}

dnnl_status_t dnnl_softmax_forward_primitive_desc_create(dnnl_primitive_desc_t* made, dnnl_engine_t engine,
                                                         dnnl_prop_kind_t prop, dnnl_alg_kind_t algorithm,
                                                         const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
                                                         int axis, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_softmax_forward_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_softmax_forward_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, engine, prop, algorithm, src, dst, axis, attributes); });
}

dnnl_status_t dnnl_softmax_backward_primitive_desc_create(dnnl_primitive_desc_t* made, dnnl_engine_t engine,
                                                          dnnl_alg_kind_t algorithm, const_dnnl_memory_desc_t diff_src,
                                                          const_dnnl_memory_desc_t diff_dst,
                                                          const_dnnl_memory_desc_t dst, int axis,
                                                          const_dnnl_primitive_desc_t hint,
                                                          const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_softmax_backward_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_softmax_backward_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, engine, algorithm, diff_src, diff_dst, dst, axis, hint, attributes); });
}

dnnl_status_t dnnl_reorder_primitive_desc_create(dnnl_primitive_desc_t* made, const_dnnl_memory_desc_t src,
                                                 dnnl_engine_t src_engine, const_dnnl_memory_desc_t dst,
                                                 dnnl_engine_t dst_engine, const_dnnl_primitive_attr_t attributes) {
  constexpr const char* kName = "dnnl_reorder_primitive_desc_create";
  static auto* const next = next_function<decltype(dnnl_reorder_primitive_desc_create)>(kName);
  return making(Kind::description, Object::description, kName,
                [&] { return next(made, src, src_engine, dst, dst_engine, attributes); });
}

#endif

}  // extern "C"
