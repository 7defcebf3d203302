// The effect of rounded factors on attention and its gradients. It separates a device that computes in tf32 or bf16
// from a wrong one. Used by tolerance_of.
#pragma once

#include <cstddef>
#include <span>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// Largest error of result k of Attention (the result, the logarithms of the sums), of the gradient of its query, or of
/// those of key and value, if each factor of a multiplication is rounded to `unit`. `results` are the exact ones. Heads
/// have D values; Q queries meet S keys. R is the largest rms of a row, E = scale·√D·R(q)·R(k) the magnitude of scores,
/// G = √D·R(diff)·R(v) that of the gradients of weights:
///   result     8·unit·(1 + E)·max|v|
///   logarithms 8·unit·E
///   diff_q     8·unit·((1 + E)·max|diff_q| + scale·G·max|k|)
///   diff_k     8·unit·((1 + E)·max|diff_k| + scale·G·max|q|·(max|diff_v|/R(diff) + 4·√Q/S))
///   diff_v     8·unit·((1 + E)·max|diff_v| + R(diff)·4·√Q/S)
/// Dropout scales the weights that it keeps, and G and √Q/S with them. max|diff_v|/R(diff) estimates the sum of the
/// weights of one key. Real rounding reaches at most a third of this bound: with flat and peaked weights, with
/// outliers, with one key that all queries attend to, and with gradients that cancel
/// (tests/compare/tolerance/attention.cpp). 0 for any other operator.
[[nodiscard]] double attention_tolerance(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k,
                                         double unit, Magnitudes& magnitudes);

}  // namespace concord
