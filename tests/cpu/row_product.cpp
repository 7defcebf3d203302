// Products of one row: against the same product in double precision with its epilogue, NaN through a relu, and that a
// column's bits depend neither on the other columns nor on how threads share them.
#include <cmath>
#include <limits>

#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

const Scalar kResult = scalar::input(0), kFirst = scalar::input(1), kSecond = scalar::input(2);

/// The weight of input p and column j.
float weight(const Tensor& weights, bool transposed, std::size_t p, std::size_t j) {
  const auto columns = static_cast<std::size_t>(weights.shape()[-1]);
  return transposed ? weights.values<float>()[j * columns + p] : weights.values<float>()[p * columns + j];
}

double dot(const Tensor& row, const Tensor& weights, bool transposed, std::size_t j) {
  double sum = 0;
  for (std::size_t p = 0; p < row.values<float>().size(); ++p) {
    sum += static_cast<double>(row.values<float>()[p]) * static_cast<double>(weight(weights, transposed, p, j));
  }
  return sum;
}

Shape weights_shape(std::int64_t k, std::int64_t n, bool transposed) { return transposed ? Shape{n, k} : Shape{k, n}; }

/// Only the weights of column j.
Tensor column_of(const Tensor& weights, bool transposed, std::int64_t k, std::size_t j) {
  Tensor column(DType::f32, weights_shape(k, 1, transposed));
  for (std::size_t p = 0; p < column.values<float>().size(); ++p) {
    column.values<float>()[p] = weight(weights, transposed, p, j);
  }
  return column;
}

}  // namespace

TEST_CASE("a product of one row and its epilogue are what double precision gives", "[cpu]") {
  for (const bool transposed : {false, true}) {
    for (const auto& [k, n] : {std::array{1, 1}, {3, 2}, {16, 64}, {17, 90}, {784, 301}}) {
      const Tensor row = normal_tensor(Shape{1, k}, 1), weights = normal_tensor(weights_shape(k, n, transposed), 2);
      const Tensor bias = normal_tensor(Shape{n}, 3), residual = normal_tensor(Shape{1, n}, 4);
      const ops::Fused fused(std::make_shared<ops::Matmul>(false, transposed), 2,
                             Expression({scalar::max((kResult + kFirst) * 0.5F - kSecond, 0.0F)}, 3), "matmul+more");
      const KernelRun run = run_kernel(fused, {row, weights, bias, residual}, false);
      CHECK_THAT(run.kernel, contains("row times matrix"));
      for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
        const double sum = dot(row, weights, transposed, j) + static_cast<double>(bias.values<float>()[j]);
        const double wanted = std::max(sum * 0.5 - static_cast<double>(residual.values<float>()[j]), 0.0);
        REQUIRE(run.outputs[0].values<float>()[j] == Approx(wanted).margin(1e-6 * k + 1e-6));
      }
    }
  }
}

TEST_CASE("a column's bits do not depend on the other columns of a product of one row", "[cpu]") {
  constexpr std::int64_t kInner = 300, kColumns = 601;  // enough for several threads
  const Tensor row = normal_tensor(Shape{1, kInner}, 1);
  for (const bool transposed : {false, true}) {
    const ops::Matmul matmul(false, transposed);
    const Tensor weights = normal_tensor(weights_shape(kInner, kColumns, transposed), 2);
    const Tensor all = run_kernel(matmul, {row, weights}, false).outputs[0];
    for (const std::size_t j : {0U, 4U, 150U, 299U, 300U, 301U, 599U, 600U}) {
      const Tensor one = run_kernel(matmul, {row, column_of(weights, transposed, kInner, j)}, false).outputs[0];
      CHECK(one.values<float>()[0] == all.values<float>()[j]);
    }
  }
}

TEST_CASE("NaN in the row of a product reaches every column through a relu", "[cpu]") {
  Tensor row = normal_tensor(Shape{1, 20}, 1);
  row.values<float>()[19] = std::numeric_limits<float>::quiet_NaN();
  const ops::Fused fused(std::make_shared<ops::Matmul>(false, true), 2,
                         Expression({scalar::max(kResult + kFirst, 0.0F)}, 2), "matmul+bias+relu");
  const Tensor y =
      run_kernel(fused, {row, normal_tensor(Shape{9, 20}, 2), normal_tensor(Shape{9}, 3)}, false).outputs[0];
  for (const float value : y.values<float>()) CHECK(std::isnan(value));
}

}  // namespace concord::test
