// Gemm: a product of dense matrices.
#include "concord/opencl/gemm/problem.hpp"

#include <algorithm>

namespace concord::opencl {

Gemm dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_along_k, bool b_along_k) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.a.row = a_along_k ? k : 1;
  gemm.a.k = a_along_k ? 1 : m;
  gemm.b.k = b_along_k ? 1 : n;
  gemm.b.n = b_along_k ? k : 1;
  gemm.b.along_k = b_along_k;
  gemm.c.row = n;
  gemm.largest = std::max({m * k, k * n, m * n});
  return gemm;
}

}  // namespace concord::opencl
