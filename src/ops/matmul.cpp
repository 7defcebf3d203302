// Matmul: shape rule, gradients as further products, cost.
#include "concord/ops/matmul.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

std::span<const std::int64_t> batch_dims(const Shape& shape) { return shape.dims().first(shape.rank() - 2); }

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

/// (…, M, K) as (…·M, K): the batch joins the rows.
Value as_matrix(Value x) { return reshape(x, std::vector<std::int64_t>{-1, x.shape()[-1]}); }

}  // namespace

std::vector<TensorSpec> Matmul::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_type(name(), "weights", inputs[1], DType::f32);
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  CONCORD_CHECK(a.rank() >= 2 && b.rank() >= 2, ShapeError, "matmul: {} x {}: both need at least two dimensions",
                a.str(), b.str());
  const std::int64_t inner_a = a[transpose_a_ ? -2 : -1];
  const std::int64_t inner_b = b[transpose_b_ ? -1 : -2];
  CONCORD_CHECK(inner_a == inner_b, ShapeError, "matmul: {}{} x {}{}: inner sizes {} and {} differ", a.str(),
                transpose_a_ ? " transposed" : "", b.str(), transpose_b_ ? " transposed" : "", inner_a, inner_b);
  const auto batch_a = batch_dims(a);
  const auto batch_b = batch_dims(b);
  CONCORD_CHECK(batch_a.empty() || batch_b.empty() || std::ranges::equal(batch_a, batch_b), ShapeError,
                "matmul: {} x {}: batch dimensions must be equal, or absent on one side", a.str(), b.str());
  const auto batch = batch_a.empty() ? batch_b : batch_a;
  std::vector<std::int64_t> dims(batch.begin(), batch.end());
  dims.push_back(a[transpose_a_ ? -1 : -2]);
  dims.push_back(b[transpose_b_ ? -2 : -1]);
  return {{DType::f32, Shape(std::move(dims))}};
}

std::vector<Value> Matmul::gradient(const Node& node, std::span<const Value> diff_dst,
                                    const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  const Value diff = diff_dst[0];
  if (!diff) return diffs;
  const Value a = node.inputs[0];
  const Value b = node.inputs[1];
  if (wanted[0]) {
    const Value full = transpose_a_ ? matmul(b, diff, transpose_b_, true) : matmul(diff, b, false, !transpose_b_);
    diffs[0] = sum_to(full, a.shape());
  }
  if (wanted[1]) {
    // One matrix that served a whole batch of plain rows: the sum over the batch is part of one larger product.
    const bool join = b.shape().rank() == 2 && a.shape().rank() > 2 && !transpose_a_;
    const Value rows = join ? as_matrix(a) : a;
    const Value diff_rows = join ? as_matrix(diff) : diff;
    const Value full =
        transpose_b_ ? matmul(diff_rows, rows, true, transpose_a_) : matmul(rows, diff_rows, !transpose_a_, false);
    diffs[1] = sum_to(full, b.shape());
  }
  return diffs;
}

Cost Matmul::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  const MatmulSizes s = sizes_of(*this, inputs[0].shape, inputs[1].shape);
  cost.flops = 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) *
               static_cast<double>(s.k);
  return cost;
}

std::string Matmul::attributes() const { return std::string(transpose_a_ ? "T" : "N") + (transpose_b_ ? "T" : "N"); }

MatmulSizes sizes_of(const Matmul& op, const Shape& a, const Shape& b) {
  MatmulSizes s{};
  s.batch_a = product(batch_dims(a));
  s.batch_b = product(batch_dims(b));
  s.batch = std::max(s.batch_a, s.batch_b);
  s.m = a[op.transpose_a() ? -1 : -2];
  s.k = a[op.transpose_a() ? -2 : -1];
  s.n = b[op.transpose_b() ? -2 : -1];
  if (s.batch_b == 1 && !op.transpose_a()) {
    s.m *= s.batch;
    s.batch = s.batch_a = 1;
  }
  return s;
}

}  // namespace ops

Value matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  return a.graph().add(std::make_shared<ops::Matmul>(transpose_a, transpose_b), {a, b});
}

}  // namespace concord
