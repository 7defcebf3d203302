// How far two correct implementations of one operator may differ on the same inputs.
#pragma once

#include <cstddef>
#include <span>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// Largest absolute difference that rounding explains between two fp32 implementations of this operator, for output `k`
/// of a replayed node. u = 2^-24:
///   sums of products (matmul, convolution)      4·max(8, √K/4)·u · K·rms(a)·rms(b), K terms each
///   sums (also scatter-add, avg pool, resample) 4·max(8, √K/4)·u · K·rms(src), K of scatter-add: of its fullest place
///   scatter-add, avg pool, resampling also      8u · (the largest |result| + the largest |src|)
///   cumulative sums                             as sums of as many terms as the axis has
///   softmax, cross-entropy, normal, CTC,
///     attention                                 4e-5 · (largest |result| + 0.01·largest |f32 input|)
///   pointwise, updates of variables             pointwise_tolerance()
///   matmul and convolution with an epilogue     as without, and as softmax
///   batch norm                                  2e-5 of the largest |result|, and of rms(src) for its statistics
///   its backward                                2e-4 of the largest |result|; diff_scale, diff_shift also as a sum
///   row norm                                    2e-4 as batch norm
///   recurrent; the backward of attention        1e-4; 2e-4 of the largest |result|
///   max pool's gradient                         n²u · the largest |diff|, n > 1 windows over one place
///   copies, max pool, gather, uniform, reorder  0
/// The rms of a factor is that of the largest numbers that are summed together: of a matrix of its largest row (column)
/// along K, of weights of those of one channel, of an image whose places are summed of its largest channel, of a
/// reduction's src of its terms. A product of the largest factors may differ by 16u of it (factors of 22 bits serve as
/// fp32), and by u for each term added to it. Where anything may differ, so may numbers below the smallest normal one,
/// which devices may take for 0: 2^-126 for each term that is summed up, times what they are multiplied by. Integer
/// results must be equal.
///
/// With another precision each device may or may not round factors to it (p = unit_of): what is a product may differ by
/// 4p·K·rms(a)·rms(b) more, recurrent operators by 64p of the largest |result|, attention by attention_tolerance(). In
/// bf16 and fp16 images (three dimensions and more) may be stored as such numbers too:
///   sums                                        p·(K·rms(src) + the largest |result|)
///   batch norm                                  p·(2·the largest |result| + 8·the largest scale + the largest shift)
///   its backward's diff_scale, diff_shift       p·(8·K·rms(diff) + the largest |result|)
///   pointwise                                   8p of the largest |result| and of pointwise_scale()
///   all others                                  8p of the largest |result| and |f32 input|
/// and the indices of max pooling, argmax and top-k are not compared: rounded numbers tie.
[[nodiscard]] double tolerance_of(const ReplayedNode& node, std::size_t k, Precision precision = Precision::fp32);
/// The same for a node whose results stand for those that others gave, by the magnitudes of tensors that other nodes
/// read too, to which it adds those it had to find.
[[nodiscard]] double tolerance_of(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k,
                                  Precision precision, Magnitudes& magnitudes);

/// `error` as it is to be held against the tolerance: 0 where it tells nothing, since nothing is compared (the
/// tolerance is infinite), or since numbers are so near the end of f32 that one order of a sum overflows and another
/// does not.
[[nodiscard]] double comparable_error(double error, double tolerance);

}  // namespace concord
