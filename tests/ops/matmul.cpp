// Matrix products: every transposition, batches and shared operands, against plain loops.
#include "concord/ops/matmul.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Product {
  Shape a, b;
  bool transpose_a = false, transpose_b = false;
  [[nodiscard]] std::string str() const {
    return fmt::format("{}{} x {}{}", a.str(), transpose_a ? "T" : "", b.str(), transpose_b ? "T" : "");
  }
};

Array multiply(const Product& p, const Array& a, const Array& b) {
  const auto batch_of = [](const Shape& s) { return s.elements() / (s[-1] * s[-2]); };
  const std::int64_t batch = std::max(batch_of(p.a), batch_of(p.b));
  const std::int64_t m = p.a[p.transpose_a ? -1 : -2];
  const std::int64_t k = p.a[p.transpose_a ? -2 : -1];
  const std::int64_t n = p.b[p.transpose_b ? -2 : -1];
  const Shape& widest = p.a.rank() > p.b.rank() ? p.a : p.b;
  std::vector<std::int64_t> dims(widest.dims().begin(), widest.dims().end() - 2);
  dims.push_back(m);
  dims.push_back(n);
  Array dst{Shape(dims)};
  for (std::int64_t g = 0; g < batch; ++g) {
    const std::int64_t ga = batch_of(p.a) == 1 ? 0 : g * m * k;
    const std::int64_t gb = batch_of(p.b) == 1 ? 0 : g * k * n;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double total = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const std::int64_t ia = ga + (p.transpose_a ? l * m + i : i * k + l);
          const std::int64_t ib = gb + (p.transpose_b ? j * k + l : l * n + j);
          total += a.values[static_cast<std::size_t>(ia)] * b.values[static_cast<std::size_t>(ib)];
        }
        dst.values[static_cast<std::size_t>((g * m + i) * n + j)] = total;
      }
    }
  }
  return dst;
}

Case product_case(const Product& p, Array a, Array b, Scale scale, double tolerance) {
  return {
      .name = p.str(),
      .inputs = {{std::move(a)}, {std::move(b)}},
      .build =
          [p](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1], p.transpose_a, p.transpose_b)}; },
      .reference = [p](const std::vector<Array>& x) { return std::vector{multiply(p, x[0], x[1])}; },
      .scale = scale,
      .tolerance = tolerance};
}

Product product(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
  return {ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n}, ta, tb};
}

TEST_CASE("matmul of whole numbers is exact for every transposition", "[ops][matmul]") {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const auto& [m, n, k] : {std::array{1, 1, 1}, {5, 7, 3}, {1, 10, 17}, {33, 1, 9}, {17, 19, 33}}) {
        const Product p = product(m, n, k, ta, tb);
        check(product_case(p, integers(p.a, 1), integers(p.b, 2), Scale::exact, 0));
      }
    }
  }
}

TEST_CASE("matmul of batches, and of one matrix with a batch", "[ops][matmul]") {
  const std::vector<Product> products = {
      {{3, 5, 4}, {3, 4, 6}},
      {{3, 4, 5}, {3, 4, 6}, true, false},
      {{3, 5, 4}, {3, 6, 4}, false, true},
      {{3, 4, 5}, {3, 6, 4}, true, true},
      {{2, 3, 5, 4}, {2, 3, 4, 1}},
      {{2, 3, 5, 4}, {4, 6}},
      {{2, 5, 4}, {6, 4}, false, true},
      {{2, 4, 5}, {4, 6}, true, false},
      {{5, 4}, {2, 4, 6}},
      {{4, 5}, {2, 6, 4}, true, true},
  };
  for (const Product& p : products) check(product_case(p, integers(p.a, 3), integers(p.b, 4), Scale::exact, 0));
}

TEST_CASE("matmul of random numbers keeps to the bound of its products", "[ops][matmul]") {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Product p = product(9, 11, 21, ta, tb);
      check(product_case(p, normal(p.a, 5), normal(p.b, 6), Scale::products, 8));
    }
  }
  const Product large = product(20, 30, 10, false, false);
  check(product_case(large, normal(large.a, 7, 1e4), normal(large.b, 8, 1e4), Scale::products, 8));
  const Product deep = product(3, 5, 3000, false, true);
  Case test = product_case(deep, normal(deep.a, 9), normal(deep.b, 10), Scale::products, std::sqrt(3000.0) / 4);
  test.gradient = false;
  check(test);
}

TEST_CASE("matmul refuses what does not fit, naming the operands", "[ops][matmul]") {
  const auto error_of = [](const Shape& a, const Shape& b) {
    return shape_error({{DType::f32, a}, {DType::f32, b}},
                       [](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1])}; });
  };
  CHECK_THAT(error_of({2, 3}, {4, 5}), contains("[2, 3]") && contains("[4, 5]"));
  CHECK_THAT(error_of({2, 2, 3}, {3, 3, 5}), contains("[2, 2, 3]") && contains("batch"));
  CHECK_THAT(error_of({3}, {3, 5}), contains("[3]"));
}

TEST_CASE("a batch of rows times one matrix is one larger product", "[ops][matmul]") {
  const ops::MatmulSizes s = ops::sizes_of(ops::Matmul(false, false), {2, 3, 5, 4}, {4, 6});
  CHECK(s.batch == 1);
  CHECK(s.m == 30);
  const ops::MatmulSizes t = ops::sizes_of(ops::Matmul(true, false), {2, 4, 5}, {4, 6});
  CHECK(t.batch == 2);
  CHECK(t.batch_b == 1);
  CHECK(t.m == 5);
}

}  // namespace
}  // namespace concord::test
