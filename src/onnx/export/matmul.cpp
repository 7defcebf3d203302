// Matrix products: Gemm for matrices, MatMul with transposed operands for batches of them.
#include "concord/ops/matmul.hpp"

#include <numeric>

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

std::string last_two_swapped(NodeExport& x, const std::string& name, std::size_t rank) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 1], order[rank - 2]);
  return x.transpose(name, std::move(order));
}

void write_matmul(NodeExport& x) {
  const auto& op = x.op<ops::Matmul>();
  const std::size_t rank_a = x.in_sizes(0).size(), rank_b = x.in_sizes(1).size();
  const bool is_plain = !op.transpose_a() && !op.transpose_b();
  if (rank_a == 2 && rank_b == 2 && !is_plain) {
    x.bind(0, x.add("Gemm", {x.in(0), x.in(1)},
                    {whole("transA", op.transpose_a() ? 1 : 0), whole("transB", op.transpose_b() ? 1 : 0)}));
    return;
  }
  const std::string a = op.transpose_a() ? last_two_swapped(x, x.in(0), rank_a) : x.in(0);
  const std::string b = op.transpose_b() ? last_two_swapped(x, x.in(1), rank_b) : x.in(1);
  x.bind(0, x.add("MatMul", {a, b}));
}

}  // namespace

void add_matmul_rules(Rules& rules) { rules[typeid(ops::Matmul)] = write_matmul; }

}  // namespace concord::onnx
