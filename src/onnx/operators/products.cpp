// Matrix products of ONNX: MatMul, Gemm, Det.
#include "concord/onnx/operators/products.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/adaptive_means.hpp"
#include "concord/onnx/operators/attention.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {

namespace {

/// x where `value` is x with the last two axes swapped; else empty.
Value before_last_swap(const Value& value) {
  const auto* op = dynamic_cast<const ops::Transpose*>(value.node().op.get());
  if (op == nullptr) return {};
  std::vector<std::size_t> swapped(op->order().size());
  std::iota(swapped.begin(), swapped.end(), std::size_t{0});
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return op->order() == swapped ? value.node().inputs[0] : Value{};
}

}  // namespace

Value broadcast_product(Value a, Value b) {
  // The product reads a transposed operand as it is.
  const Value straight_a = before_last_swap(a), straight_b = before_last_swap(b);
  if (straight_a) a = straight_a;
  if (straight_b) b = straight_b;
  Dims batch_a = dims_of(a), batch_b = dims_of(b);
  batch_a.resize(batch_a.size() - 2);
  batch_b.resize(batch_b.size() - 2);
  const auto only_ones = [](const Dims& dims) {
    return std::ranges::all_of(dims, [](std::int64_t d) { return d == 1; });
  };
  const Dims batch = broadcast_dims(batch_a, batch_b);
  const auto matrix = [](const Value& x) { return Shape{x.shape()[-2], x.shape()[-1]}; };
  const auto widened = [&](const Value& x, const Dims& own) {
    if (own == batch) return x;
    if (only_ones(own)) return reshape(x, matrix(x));  // one matrix for the whole batch
    Dims dims = batch;
    dims.insert(dims.end(), {x.shape()[-2], x.shape()[-1]});
    return expanded(x, dims);
  };
  const Value left = widened(a, batch_a), right = widened(b, batch_b);
  const Value y = matmul(left, right, bool{straight_a}, bool{straight_b});
  Dims dims = batch;
  dims.insert(dims.end(), {y.shape()[-2], y.shape()[-1]});
  return dims_of(y) == dims ? y : reshape(y, Shape(dims));
}

namespace {

void matmul_of(Call& call) {
  Value a = call.number_value(0), b = call.number_value(1);
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  for (auto* const known : {attention_of, adaptive_mean_of}) {
    if (const Value y = known(call, a, b)) return call.set(0, y, call.type(0));
  }
  Value y = broadcast_product(a, b);
  Dims dims = dims_of(y);
  if (column) dims.pop_back();
  if (row) dims.erase(dims.end() - (column ? 1 : 2));
  call.set(0, row || column ? reshape(y, Shape(dims)) : y, call.type(0));
}

void gemm(Call& call) {
  const float alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  const Value product = matmul(call.number_value(0), call.number_value(1), call.integer("transA", 0) != 0,
                               call.integer("transB", 0) != 0);
  if (!call.has(2) || beta == 0) return call.set(0, alpha == 1 ? product : product * alpha, call.type(0));
  const Value c = call.number_value(2);
  if (alpha == 1 && beta == 1) return call.set(0, product + c, call.type(0));
  call.set(0, pointwise("gemm", {product, c}, alpha * scalar::input(0) + beta * scalar::input(1)), call.type(0));
}

// The determinant by the elements of the first row, which is short for the small matrices of networks.
Value determinant(const Value& x, std::size_t rows, std::vector<std::int64_t> columns) {
  const auto last = static_cast<std::int64_t>(x.shape().rank()) - 1;
  const auto row = static_cast<std::int64_t>(rows - columns.size());
  const auto element = [&](std::int64_t column) {
    const Value in_row = slice(x, last - 1, row, row + 1);
    Dims dims = dims_of(x);
    dims.resize(dims.size() - 2);
    return reshape(slice(in_row, last, column, column + 1), Shape(dims));
  };
  if (columns.size() == 1) return element(columns[0]);
  Value total;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    std::vector<std::int64_t> others = columns;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
    const Value term = element(columns[k]) * determinant(x, rows, others);
    total = !total ? term : k % 2 == 0 ? total + term : total - term;
  }
  return total;
}

void det(Call& call) {
  constexpr std::int64_t kMost = 4;
  const Dims& dims = call.dims(0);
  CONCORD_CHECK(dims.size() >= 2 && dims[dims.size() - 1] == dims[dims.size() - 2], ShapeError,
                "square matrices are needed");
  CONCORD_CHECK(dims.back() >= 1 && dims.back() <= kMost, NotSupported,
                "matrices of {} rows; Concord computes determinants of at most {}", dims.back(), kMost);
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < dims.back(); ++i) columns.push_back(i);
  call.set(0, determinant(call.value(0), columns.size(), columns), call.type(0));
}

}  // namespace

void add_products(Table& table) {
  table.add("MatMul", {.run = matmul_of});
  table.add("Gemm", {.run = gemm});
  table.add("Det", {.since = 11, .run = det});
  add_einsum(table);
}

}  // namespace concord::onnx
