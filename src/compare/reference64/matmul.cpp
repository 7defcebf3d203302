// Matrix products: c(m, n) = Σ_k a(m, k)·b(k, n), see ops::Matmul.
#include "concord/ops/matmul.hpp"

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {

Results matmul(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Matmul*>(node.op);
  if (op == nullptr) return {};
  const Values a = doubles(node.inputs[0]), b = doubles(node.inputs[1]);
  const ops::MatmulSizes s = ops::sizes_of(*op, node.inputs[0].shape(), node.inputs[1].shape());
  const std::int64_t a_m = op->transpose_a() ? 1 : s.k, a_k = op->transpose_a() ? s.m : 1;
  const std::int64_t b_k = op->transpose_b() ? 1 : s.n, b_n = op->transpose_b() ? s.k : 1;
  Values c = zeros(node.results[0]);
  for (std::int64_t batch = 0; batch < s.batch; ++batch) {
    const double* const left = a.data() + (s.batch_a > 1 ? batch * s.m * s.k : 0);
    const double* const right = b.data() + (s.batch_b > 1 ? batch * s.k * s.n : 0);
    double* const to = c.data() + batch * s.m * s.n;
    for (std::int64_t m = 0; m < s.m; ++m) {
      for (std::int64_t k = 0; k < s.k; ++k) {
        const double factor = left[m * a_m + k * a_k];
        for (std::int64_t n = 0; n < s.n; ++n) to[m * s.n + n] += factor * right[k * b_k + n * b_n];
      }
    }
  }
  return {{std::move(c)}};
}

}  // namespace concord::float64
