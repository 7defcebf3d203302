// What products of rounded factors do to attention and its gradients, so that a device which computes them in tf32 or
// bf16 can be told from one that is wrong. Used by tolerance_of.
#pragma once

#include <cstddef>
#include <span>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// How far result k of Attention (the result, the logarithms of the sums), of its query's gradient, or of those of key
/// and value may be off where each factor of a product is rounded to `unit`; `results` are the right ones. With heads
/// of D values, R the largest rms of a row, E = scale·√D·R(q)·R(k) the size of scores, G = √D·R(diff)·R(v) that of the
/// gradients of weights, and Q queries on S keys:
///   result     8·unit·(1 + E)·max|v|
///   logarithms 8·unit·E
///   diff_q     8·unit·((1 + E)·max|diff_q| + scale·G·max|k|)
///   diff_k     8·unit·((1 + E)·max|diff_k| + scale·G·max|q|·(max|diff_v|/R(diff) + 4·√Q/S))
///   diff_v     8·unit·((1 + E)·max|diff_v| + R(diff)·4·√Q/S)
/// and with dropout as much more as the weights that stay. max|diff_v|/R(diff) stands for the weights that meet in one
/// key. Rounding as such takes at most a third of it, with flat and peaked weights, outliers, one key that all look at,
/// and gradients that add up to nothing (tests/compare/tolerance/attention.cpp). 0 for any other operator.
[[nodiscard]] double attention_tolerance(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k,
                                         double unit, Magnitudes& magnitudes);

}  // namespace concord
