// What oneDNN computes wrong, version by version, and how this backend does without it. Used where primitives are made;
// tests/cpu holds oneDNN to each row, tests/compile/random_networks.cpp looks for further ones.
//
//   versions   primitive                       what is wrong                           instead
//   2.6        compiled post-operations        eltwise_linear steps all take the       one such step a chain
//              (brgemm, jit), products and     numbers of the last one of the chain    (epilogue.cpp)
//              convolutions
//   2.6        convolution by x64:gemm:jit,    binary post-operations take other       a pass of our own, as
//              channels-last                   elements of an operand of the whole     for each chain that a
//                                              result, and of one by channel in        kernel computes wrong
//                                              three dimensions                        (post_ops_check.cpp)
//   2.6        depthwise convolution before    the step that adds what lies in the     that operand is read
//              AVX2 (jit_dw:sse41),            result needs addresses that are         beside the result
//              channels-last                   multiples of 16: it crashes unless
//                                              the channels are multiples of 4
//   2.6        weights' gradient of a 1x1      writes beyond its memory where the      the next implementation
//              convolution with a stride,      channels of src are no multiple of 16
//              jit_1x1 (avx2, avx512_core),
//              channels-last
//   2.6        convolution in bf16 by AMX      wrong, or writes beyond its memory,     fp32
//              (brgconv)                       where a kernel of several taps is
//                                              shorter than its stride
//   2.6        weights' gradient in bf16 (jit  wrong, or writes beyond its memory,     fp32
//              of AMX and AVX512-BF16)         with a dilation
//   2.6        eltwise_relu                    NaN becomes 0                           a pass of our own
//   2.6        products of 2^31 rows and more  sizes are cut to 32 bits: a division    NotSupported
//                                              by zero ends the process
//   2.6        compiled fp32 products          the stack pointer points into a         signals are blocked
//              (gemm:jit)                      buffer on the heap: the frame of a      (signals.hpp)
//                                              signal's handler is written there
#pragma once

#include <string_view>

#include "concord/device/kernel.hpp"
#include "concord/ops/conv.hpp"

namespace concord::cpu {

struct Backend;

/// Whether this implementation of the weights' gradient, named as in oneDNN, is in the table.
[[nodiscard]] bool is_faulty_backward_weights(std::string_view implementation, const ops::ConvSizes& sizes);

/// Whether this implementation of a convolution to so many channels may not add its result to what lies there.
[[nodiscard]] bool is_faulty_sum(std::string_view implementation, std::int64_t channels);

/// Whether the convolution, or its gradient, is in the table with operands in bf16.
[[nodiscard]] bool is_faulty_in_bf16(const ops::ConvSizes& sizes);
/// The same of the weights' gradient.
[[nodiscard]] bool is_faulty_backward_weights_in_bf16(const ops::ConvSizes& sizes);

/// Throws NotSupported if an operand or a result is larger along an axis than oneDNN can count.
void check_countable(const KernelRequest& request);

/// The prepare function of a kernel that may hand its operands to oneDNN.
template <class Op, PreparedKernel (*prepare)(Backend&, const Op&, const KernelRequest&)>
PreparedKernel by_onednn(Backend& backend, const Op& op, const KernelRequest& request) {
  check_countable(request);
  return prepare(backend, op, request);
}

}  // namespace concord::cpu
