// How far two correct implementations of one operator may differ on the same inputs.
#pragma once

#include <cstddef>
#include <span>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// Largest absolute difference by rounding between two fp32 implementations of this operator, for output `k` of a
/// replayed node. u = 2^-24:
///   sums of products (matmul, convolution)      4·max(8, √K/4)·u · K·rms(a)·rms(b), K terms each
///   sums (also scatter-add, avg pool, resample) 4·max(8, √K/4)·u · K·rms(src), K of scatter-add: of its fullest place
///   scatter-add, avg pool, resampling also      8u · (the largest |result| + the largest |src|)
///   products over axes                          4·(1 + n)·u · the largest |result|, n factors each
///   cumulative sums                             as sums of as many terms as the axis has, and u · the largest |result|
///   softmax                                     4e-5 · the largest |result|, of 1e-6 at least
///   its logarithm and gradients, cross-entropy,
///     normal, CTC, attention                    4e-5 · (the largest |result| + 0.01·operand_scale())
///   pointwise, updates of variables, numbers
///     beside the check of gradients             pointwise_tolerance()
///   matmul, convolution, sums and gradients of
///     pools with an epilogue                    as without, and as attention
///   batch norm                                  2e-5 of the largest |result|, and of rms(src) for its statistics
///   its backward                                2e-4 of the largest |result|; diff_scale, diff_shift also as a sum
///   row norm                                    2e-4 as batch norm
///   recurrent; the backward of attention        1e-4; 2e-4 of the largest |result|
///   max pool's gradient                         n²u · the largest |diff|, n > 1 windows over one place
///   copies, max pool, gather, uniform, reorder  0
/// The rms of a factor is the largest rms of values that are summed together: of a row (column) of a matrix along K, of
/// the weights of one channel, of a channel of an image whose pixels are summed, of the terms of a reduction. The
/// product of the largest factors may differ by 16u of its value (factors with 22 bits count as fp32), and by u for
/// each term added to it. If anything may differ, so may numbers below the smallest normal one, because devices may
/// treat them as 0: by 2^-126 for each term of a sum, times its factor. Integer results must be equal.
///
/// With another precision each device may or may not round factors to it (p = unit_of). Matrix multiplications and
/// convolutions may then differ by 4p·K·rms(a)·rms(b) more, recurrent operators by 64p of the largest |result|,
/// attention by attention_tolerance(). In bf16 and fp16 a device may also store values of two dimensions and more in
/// 16 bits, which adds:
///   sums                                        p·(K·rms(src) + the largest |result|)
///   batch norm                                  p·(2·the largest |result| + 8·the largest scale + the largest shift)
///   its backward's diff_scale, diff_shift       p·(8·K·rms(diff) + the largest |result|)
///   pointwise                                   8p of the largest |result| and of pointwise_scale(); 2 of them where
///                                               a rounded operand may_jump() to another branch
///   all others                                  8p of the largest |result| and of operand_scale()
/// Then the indices of max pooling, argmax and top-k are not compared, because rounded numbers may be equal.
[[nodiscard]] double tolerance_of(const ReplayedNode& node, std::size_t k, Precision precision = Precision::fp32);
/// The same for a node with `results` in place of its own. Right results, if there are any, keep wrong ones from
/// widening their own tolerance. Uses the magnitudes of tensors that other nodes read too, and adds those that are
/// missing.
[[nodiscard]] double tolerance_of(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k,
                                  Precision precision, Magnitudes& magnitudes);

/// The error to compare with the tolerance. 0 if the result is not compared (the tolerance is infinite), or if values
/// are so near the end of f32 that one order of a sum overflows and another does not.
[[nodiscard]] double comparable_error(double error, double tolerance);

}  // namespace concord
