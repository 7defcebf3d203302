// oneDNN as this backend uses it: one engine and stream for the process, and primitive descriptors made by the same
// calls under oneDNN 2.6 (operation descriptors) and 3.x (none). The only file that knows the version. Every primitive
// takes its scratchpad from the caller. Errors of oneDNN become Concord's through `guarded`.
#pragma once

#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/core/error.hpp"

namespace concord::cpu {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

inline constexpr bool kOneDnn3 = DNNL_VERSION_MAJOR >= 3;

[[nodiscard]] inline dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

[[nodiscard]] inline dnnl::stream& stream() {
  static dnnl::stream stream(engine());
  return stream;
}

[[noreturn]] inline void throw_as_ours(const dnnl::error& error, std::string_view what) {
  const std::string text =
      std::string(what) + " on the CPU: oneDNN reports " + dnnl_status2str(error.status) + " (" + error.what() + "). ";
  if (error.status == dnnl_out_of_memory) throw OutOfMemory(text + "Use a smaller batch, or close other programs");
  const std::string advice = "`concord doctor --device cpu` tests oneDNN";
  if (error.status == dnnl_unimplemented) throw NotSupported(text + advice);
  throw DeviceError(text + advice);
}

/// function(), with dnnl::error turned into OutOfMemory, NotSupported or DeviceError naming `what`.
template <class Function>
auto guarded(std::string_view what, Function&& function) {
  try {
    return function();
  } catch (const dnnl::error& error) {
    throw_as_ours(error, what);
  }
}

/// Whether oneDNN multiplies bf16 numbers by instructions of this processor (AVX512-BF16, AMX). It also has slow
/// kernels for others.
[[nodiscard]] inline bool has_bf16_units() {
  constexpr auto kBits = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
  static const bool has_them = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kBits) == kBits;
  return has_them;
}

/// Whether values are stored in bf16 with this precision.
[[nodiscard]] inline bool stores_bf16(Precision precision) { return precision == Precision::bf16 && has_bf16_units(); }

/// Lets oneDNN round factors to the precision. It has such kernels for few processors and ignores the permission on
/// others.
inline void permit(dnnl::primitive_attr& attributes, Precision precision) {
  switch (precision) {
    case Precision::fp32: return;
#if DNNL_VERSION_MAJOR >= 3
    case Precision::tf32: return attributes.set_fpmath_mode(dnnl::fpmath_mode::tf32);
#else
    case Precision::tf32: return;
#endif
    case Precision::bf16: return attributes.set_fpmath_mode(dnnl::fpmath_mode::bf16);
    case Precision::fp16: return attributes.set_fpmath_mode(dnnl::fpmath_mode::f16);
  }
}

[[nodiscard]] inline dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {},
                                                     Precision precision = Precision::fp32) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  permit(attributes, precision);
  attributes.set_post_ops(post_ops);
  return attributes;
}

inline void append_eltwise(dnnl::post_ops& post_ops, dnnl::algorithm algorithm, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  post_ops.append_eltwise(algorithm, alpha, beta);
#else
  post_ops.append_eltwise(1.0F, algorithm, alpha, beta);
#endif
}

[[nodiscard]] inline Dims dims_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

[[nodiscard]] inline dnnl::memory::data_type type_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_data_type();
#else
  return desc.data_type();
#endif
}

/// Strides in elements, or nothing for blocked and opaque formats.
[[nodiscard]] inline std::optional<Dims> strides_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked || desc.get_inner_nblks() != 0) return {};
  return desc.get_strides();
#else
  const auto& blocking = desc.data.format_desc.blocking;
  if (desc.data.format_kind != dnnl_blocked || blocking.inner_nblks != 0) return {};
  return Dims(blocking.strides, blocking.strides + desc.data.ndims);
#endif
}

/// Stride, dilation (distance minus one, as oneDNN counts) and padding of a convolution, a number a dimension of space.
struct ConvGeometry {
  Dims stride, dilation, padding_before, padding_after;
};

/// `bias` may be an empty descriptor: none.
[[nodiscard]] inline dnnl::convolution_forward::primitive_desc conv_forward(const Desc& src, const Desc& weights,
                                                                            const Desc& bias, const Desc& dst,
                                                                            const ConvGeometry& g,
                                                                            const dnnl::primitive_attr& attributes) {
  constexpr auto kProp = dnnl::prop_kind::forward_training;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),         kProp,           kAlgorithm, src, weights, bias, dst, g.stride, g.dilation,
          g.padding_before, g.padding_after, attributes};
#else
  return {dnnl::convolution_forward::desc(kProp, kAlgorithm, src, weights, bias, dst, g.stride, g.dilation,
                                          g.padding_before, g.padding_after),
          attributes, engine()};
#endif
}

[[nodiscard]] inline dnnl::convolution_backward_data::primitive_desc conv_backward_data(
    const Desc& diff_src, const Desc& weights, const Desc& diff_dst, const ConvGeometry& g,
    const dnnl::primitive_attr& attributes) {
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const auto hint = conv_forward(diff_src, weights, Desc(), diff_dst, g, {});
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),   kAlgorithm,       diff_src,        weights, diff_dst,  g.stride,
          g.dilation, g.padding_before, g.padding_after, hint,    attributes};
#else
  return {dnnl::convolution_backward_data::desc(kAlgorithm, diff_src, weights, diff_dst, g.stride, g.dilation,
                                                g.padding_before, g.padding_after),
          attributes, engine(), hint};
#endif
}

/// The first implementation whose name `accepts` takes. Throws NotSupported if there is none. The search ends before
/// this function returns, because it reads the forward primitive and, in oneDNN 2, the operation's description.
template <class Accepts>
[[nodiscard]] dnnl::convolution_backward_weights::primitive_desc conv_backward_weights(
    const Desc& src, const Desc& diff_weights, const Desc& diff_dst, const ConvGeometry& g,
    const dnnl::primitive_attr& attributes, const Accepts& accepts) {
  using Backward = dnnl::convolution_backward_weights;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const Desc weights(dims_of(diff_weights), type_of(src), dnnl::memory::format_tag::any);
  const auto hint = conv_forward(src, weights, Desc(), diff_dst, g, {});
#if DNNL_VERSION_MAJOR >= 3
  Backward::primitive_desc desc(engine(), kAlgorithm, src, diff_weights, diff_dst, g.stride, g.dilation,
                                g.padding_before, g.padding_after, hint, attributes);
#else
  const Backward::desc operation(kAlgorithm, src, diff_weights, diff_dst, g.stride, g.dilation, g.padding_before,
                                 g.padding_after);
  Backward::primitive_desc desc(operation, attributes, engine(), hint);
#endif
  while (!accepts(desc.impl_info_str())) {
    if (!desc.next_impl()) throw NotSupported("oneDNN has no correct implementation of this weight gradient");
  }
  return desc;
}

/// `bias` may be an empty descriptor: none.
[[nodiscard]] inline dnnl::matmul::primitive_desc matmul_product(const Desc& src, const Desc& weights, const Desc& bias,
                                                                 const Desc& dst,
                                                                 const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), src, weights, bias, dst, attributes};
#else
  return {dnnl::matmul::desc(src, weights, bias, dst), attributes, engine()};
#endif
}

}  // namespace concord::cpu
