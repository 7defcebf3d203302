// tolerance_of(): the table of tolerance.hpp row by row, and that it tells rounding from a fault.
#include "concord/compare/tolerance/tolerance.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

constexpr double kUnit = 0x1p-24;

Tensor constant(Shape shape, float value) {
  Tensor tensor(DType::f32, std::move(shape));
  for (float& x : tensor.values<float>()) x = value;
  return tensor;
}

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>(Shape{static_cast<std::int64_t>(values.size())}, values);
}

// Of output `k`, which `result` is; the outputs before it are as large.
double tolerance(const Operator* op, std::vector<Tensor> inputs, Tensor result, std::size_t k = 0,
                 Precision precision = Precision::fp32) {
  ReplayedNode node{{}, op, {}, std::move(inputs), {"result"}, std::vector<Tensor>(k + 1, result)};
  if (op != nullptr) {
    std::vector<TensorSpec> specs;
    for (const Tensor& input : node.inputs) specs.push_back(input.spec());
    node.entry.cost = op->cost(specs, std::vector{node.results[0].spec()});
  }
  return tolerance_of(node, k, precision);
}

// c[i] = Σ_k a[k]·b[k, i] as one of three devices might: the numbers of the second round to 8 bits, the third leaves
// out a term.
enum class Way { right, bfloat16, one_term_short };

float rounded(float x, Way way) {
  const std::uint32_t kept = way == Way::bfloat16 ? 0xFFFF0000U : 0xFFFFFFFFU;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & kept);
}

Tensor product(const Tensor& a, const Tensor& b, Way way) {
  const auto terms = static_cast<std::size_t>(a.shape()[1]), n = static_cast<std::size_t>(b.shape()[1]);
  Tensor c(DType::f32, Shape{1, b.shape()[1]});
  for (std::size_t i = 0; i < n; ++i) {
    float sum = 0;
    for (std::size_t k = way == Way::one_term_short ? 1 : 0; k < terms; ++k) {
      sum += rounded(a.values<float>()[k], way) * rounded(b.values<float>()[k * n + i], way);
    }
    c.values<float>()[i] = sum;
  }
  return c;
}

Tensor reversed_product(const Tensor& a, const Tensor& b) {
  const auto terms = static_cast<std::size_t>(a.shape()[1]), n = static_cast<std::size_t>(b.shape()[1]);
  Tensor c(DType::f32, Shape{1, b.shape()[1]});
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = terms; k-- > 0;) c.values<float>()[i] += a.values<float>()[k] * b.values<float>()[k * n + i];
  }
  return c;
}

}  // namespace

TEST_CASE("an operator without operands has a tolerance in every precision", "[compare]") {
  Graph graph;
  const Value ones = full(graph, Shape{4, 8}, 1);
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    CHECK(tolerance(ones.node().op.get(), {}, constant({4, 8}, 1), 0, precision) < 0.1);
  }
}

TEST_CASE("scattered sums are allowed the rounding of their fullest place", "[compare]") {
  const double one = 32 * kUnit, least = 16 * kUnit;  // of numbers of size 1
  const ops::ScatterAdd rows(1000);
  const auto of_rows = [&](std::vector<std::int32_t> index) {
    const auto n = static_cast<std::int64_t>(index.size());
    return tolerance(&rows, {constant({n, 2}, 1), Tensor::of<std::int32_t>({n}, index)}, constant({1000, 2}, 1));
  };
  CHECK(of_rows({3, 1, 4, 0}) == Approx(one + least));
  CHECK(of_rows({3, 1, 3, 3, -1, 1000, -1, -1, -1}) == Approx(3 * one + least));
  CHECK(of_rows({-1, 1000}) == Approx(one + least));

  const ops::ScatterAddAlong along(1, 50);  // [2, 3, 2] -> [2, 50, 2]: the places of one column are shared
  const auto index = Tensor::of<std::int32_t>({2, 3, 2}, std::vector<std::int32_t>{7, 7, 7, 8, 1, 9,  //
                                                                                   7, 7, 2, 7, 3, 9});
  CHECK(tolerance(&along, {constant({2, 3, 2}, 1), index}, constant({2, 50, 2}, 1)) == Approx(2 * one + least));
}

TEST_CASE("a sum of the few numbers that are not 0 may be rounded", "[compare]") {
  Tensor pixels(DType::f32, {1, 1, 128, 128});
  pixels.values<float>()[77] = 1;
  Graph graph;
  const Value x = graph.input("x", {DType::f32, pixels.shape()});
  for (const Value y :
       {interpolate(x, {.scale_factor = {2}, .mode = Interpolation::linear}), avg_pool2d(x, {.kernel = {2, 2}})}) {
    const Operator* op = y.node().op.get();
    CHECK(tolerance(op, {pixels}, constant(y.shape(), 0.5625F)) > 3 * kUnit);
  }
}

TEST_CASE("gradients that meet where max pooling's windows overlap may be rounded, others not", "[compare]") {
  const Shape src{1, 1, 6, 6};
  const auto allowed = [&](const ops::PoolOptions& options) {
    const Shape dst(std::vector<std::int64_t>{1, 1, 3, 3});
    const ops::MaxPoolBackward backward(options, src);
    return tolerance(&backward, {constant(dst, 2), Tensor(DType::i32, dst)}, constant(src, 1));
  };
  CHECK(allowed({.kernel = {1, 2, 2}, .stride = {0, 0, 0}}) == 0);  // as the kernel
  CHECK(allowed({.kernel = {1, 2, 2}, .stride = {1, 2, 2}}) == 0);
  CHECK(allowed({.kernel = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1}}) == Approx(16 * kUnit * 2));
}

TEST_CASE("the tolerance of products grows with their terms and operands", "[compare]") {
  const ops::Matmul matmul(false, false);
  const Tensor a = constant({2, 100}, 3), b = constant({100, 5}, -0.5F), c = constant({2, 5}, -150);
  CHECK(tolerance(&matmul, {a, b}, c) == Approx(kUnit * (4 * 8 * 100 + 16 + 100) * 3 * 0.5));
  const Tensor long_a = constant({1, 6400}, 3), long_b = constant({6400, 1}, 2);
  CHECK(tolerance(&matmul, {long_a, long_b}, constant({1, 1}, 0)) ==
        Approx((4 * 20 + 1) * kUnit * 6400 * 6).epsilon(1e-3));

  Graph graph;
  const Value conv = conv2d(graph.input("x", {DType::f32, {1, 3, 5, 5}}), graph.input("w", {DType::f32, {2, 3, 3, 3}}));
  CHECK(tolerance(conv.node().op.get(), {constant({1, 3, 5, 5}, 2), constant({2, 3, 3, 3}, 1)},
                  constant({1, 2, 3, 3}, 54)) == Approx(kUnit * (4 * 8 * 27 + 16 + 27) * 2));

  const auto base = std::make_shared<ops::Matmul>(false, false);
  const ops::Fused fused(base, 2, Expression({scalar::max(scalar::input(0), 0.0F)}, 1), "matmul+relu");
  CHECK(tolerance(&fused, {a, b}, c) > tolerance(&matmul, {a, b}, c) + 4e-5 * 150);
}

TEST_CASE("the tolerance of a matrix product is that of its largest row and column", "[compare]") {
  Tensor a = constant({3, 16}, 0), b = constant({16, 4}, 0);
  for (std::size_t k = 0; k < 16; ++k) {
    a.values<float>()[16 + k] = 2;      // row 1
    b.values<float>()[k * 4 + 3] = -3;  // column 3
  }
  const double expected = kUnit * (4 * 8 * 16 + 16 + 16) * 2 * 3;
  const ops::Matmul plain(false, false), transposed(true, true);
  CHECK(tolerance(&plain, {a, b}, constant({3, 4}, 0)) == Approx(expected));
  Tensor a_turned = constant({16, 3}, 0), b_turned = constant({4, 16}, 0);
  for (std::size_t k = 0; k < 16; ++k) {
    a_turned.values<float>()[k * 3 + 1] = 2;
    b_turned.values<float>()[3 * 16 + k] = -3;
  }
  CHECK(tolerance(&transposed, {a_turned, b_turned}, constant({3, 4}, 0)) == Approx(expected));
}

TEST_CASE("the tolerance of a convolution is that of the channel of the largest numbers", "[compare]") {
  // (4, 4, 2, 2), 0 but for one channel.
  const auto one_channel = [](std::size_t dimension, std::size_t channel, float value) {
    Tensor tensor = constant({4, 4, 2, 2}, 0);
    const std::size_t step = dimension == 0 ? 16 : 4;
    for (std::size_t i = 0; i < 64; ++i) {
      if (i / step % 4 == channel) tensor.values<float>()[i] = value;
    }
    return tensor;
  };
  const auto expected = [](double terms) { return Approx(kUnit * (4 * 8 * terms + 16 + terms) * 2 * 3); };
  const ops::ConvOptions no_padding;
  const Tensor even = constant({4, 4, 2, 2}, 2);
  const ops::Conv forward(no_padding);
  CHECK(tolerance(&forward, {even, one_channel(0, 3, -3)}, constant({4, 4, 1, 1}, 0)) == expected(16));
  const ops::ConvBackwardData data(no_padding, Shape{4, 4, 3, 3});
  const double terms = tolerance(&data, {even, constant({4, 4, 2, 2}, 3)}, constant({4, 4, 3, 3}, 0));
  CHECK(tolerance(&data, {even, one_channel(1, 3, 3)}, constant({4, 4, 3, 3}, 0)) == Approx(terms));
  const ops::ConvBackwardWeights weights(no_padding, Shape{4, 4, 1, 1});
  CHECK(tolerance(&weights, {one_channel(1, 0, 2), one_channel(1, 2, 3)}, constant({4, 4, 1, 1}, 0)) == expected(16));
}

TEST_CASE("statistics whose terms cancel out may be off by what is rounded of the terms", "[compare]") {
  const ops::BatchNorm norm(1e-5F);
  const std::vector<Tensor> inputs{constant({4, 2}, 100), floats({1, 1}), floats({0, 0})};
  CHECK(tolerance(&norm, inputs, floats({0, 0}), 1) == Approx(2e-5 * 100));
  const ops::RowNorm rows(1, true, 1e-5F);
  CHECK(tolerance(&rows, {constant({4, 2}, 100)}, constant({4}, 0), 2) == Approx(2e-4 * 100));
  const ops::BatchNormBackward backward(1e-5F);
  CHECK(tolerance(&backward, {constant({4, 2}, 100), constant({4, 2}, 3)}, floats({0, 0}), 2) ==
        Approx(4 * 8 * kUnit * 4 * 3));
}

TEST_CASE("the tolerance of sums is that of their terms", "[compare]") {
  const ops::Reduce sum(ops::ReduceKind::sum, {1}), maximum(ops::ReduceKind::maximum, {1});
  const Tensor src = constant({2, 100}, 3);
  CHECK(tolerance(&sum, {src}, constant({2, 1}, 300)) == Approx(4 * 8 * kUnit * 100 * 3));
  CHECK(tolerance(&maximum, {src}, constant({2, 1}, 3)) == 0);
  const ops::Reduce product(ops::ReduceKind::product, {1});
  CHECK(tolerance(&product, {constant({2, 100}, -1)}, constant({2, 1}, 1)) == Approx(4 * 101 * kUnit));
  const Tensor one_large_row = Tensor::of<float>({2, 2}, {0, 0, 5, 5});
  CHECK(tolerance(&sum, {one_large_row}, constant({2, 1}, 10)) == Approx(4 * 8 * kUnit * 2 * 5));
}

TEST_CASE("the tolerance of an update in a group is that of its own numbers", "[compare]") {
  using Reach = ops::PointwiseGroup::Reach;
  const ops::PointwiseGroup group(Expression({scalar::input(0) - scalar::input(1) * scalar::input(2)}, 3), {DType::f32},
                                  "sgd", {Reach::whole, Reach::shared, Reach::whole}, 2);
  const std::vector<Tensor> inputs{constant({}, 0.5F), constant({3}, 1), constant({3}, 8), constant({2}, 100),
                                   constant({2}, 200)};
  const std::vector<Tensor> results{constant({3}, -3), constant({2}, 0)};
  const ReplayedNode node{{}, &group, {}, inputs, {"a", "b"}, results};
  CHECK(tolerance_of(node, 0, Precision::fp32) == Approx(32 * kUnit * 3 + 4e-5 * 4));
  CHECK(tolerance_of(node, 1, Precision::fp32) == Approx(4e-5 * 100));
}

TEST_CASE("the tolerance of formulas, softmax and normalisation is a part of the largest numbers", "[compare]") {
  Graph graph;
  const Value y = relu(graph.input("x", {DType::f32, {3}}));
  const Operator* relu_op = y.node().op.get();
  CHECK(tolerance(relu_op, {floats({-100, 1, 2})}, floats({0, 1, -7})) == Approx(4e-5 * (7 + 1)));
  CHECK(tolerance(relu_op, {floats({INFINITY, 1, NAN})}, floats({INFINITY, 1, NAN})) == Approx(4e-5 * 1.01));
  const ops::Softmax softmax(1, false);
  CHECK(tolerance(&softmax, {constant({1, 4}, 0)}, constant({1, 4}, 0.25F)) == Approx(4e-5 * 0.25));
  const ops::BatchNorm norm(1e-5F);
  CHECK(tolerance(&norm, {constant({4, 2}, 1), floats({1, 1}), floats({0, 0})}, constant({4, 2}, 5)) ==
        Approx(2e-5 * 5));
  const ops::BatchNormBackward backward(1e-5F);
  const std::vector<Tensor> inputs{constant({4, 2}, 1), constant({4, 2}, 3), floats({1, 2}), floats({0, 0}),
                                   floats({1, 1})};
  CHECK(tolerance(&backward, inputs, constant({4, 2}, 5)) == Approx(2e-4 * 5));
}

TEST_CASE("gradients whose terms cancel out may be 0 on the device", "[compare]") {
  // What double precision leaves of 3·2/√ε, of 3·1.
  const ops::BatchNormBackward batch(1e-4F);
  const std::vector<Tensor> of_batch{constant({4, 2}, 1), constant({4, 2}, 3), floats({1, 2}), floats({0, 0}),
                                     floats({0, 0})};
  const double allowed = tolerance(&batch, of_batch, constant({4, 2}, 0));
  CHECK(allowed > 600 * 0x1p-52);
  CHECK(allowed < 600 * 0x1p-40);
  const ops::RowNormBackward row(1, true);
  const double of_row =
      tolerance(&row, {constant({4, 2}, 3), constant({4, 2}, 1), constant({4, 1}, 1)}, constant({4, 2}, 0));
  CHECK(of_row > 3 * 0x1p-52);
  CHECK(of_row < 3 * 0x1p-40);
}

TEST_CASE("batch norm without an epsilon has a tolerance", "[compare]") {
  const ops::BatchNormBackward batch(0);
  const auto allowed = [&](float scale, std::vector<float> variances) {
    return tolerance(&batch,
                     {constant({4, 2}, 1), constant({4, 2}, 3), floats({scale, scale}), floats({0, 0}),
                      floats(std::move(variances))},
                     constant({4, 2}, 5));
  };
  CHECK(allowed(8, {4, 0.25F}) == Approx(2e-4 * 5 + 0x1p-44 * 3 * 8 / 0.5).epsilon(1e-14));
  for (const float scale : {0.0F, 8.0F}) CHECK(allowed(scale, {0, 0}) == Approx(2e-4 * 5).epsilon(1e-14));
}

TEST_CASE("the tolerance of cumulative sums is that of the line of the largest numbers", "[compare]") {
  const ops::CumSum sums(1, false, false);
  const Tensor src = Tensor::of<float>({2, 4}, {1000, -1000, 1000, -1000, 0.01F, 0.01F, 0.01F, 0.01F});
  CHECK(tolerance(&sums, {src}, constant({2, 4}, 1000)) == Approx(4 * 8 * kUnit * 4 * 1000 + kUnit * 1000));
}

TEST_CASE("what only moves numbers, and whole numbers, must be equal", "[compare]") {
  const Tensor src = constant({2, 3}, 1000);
  CHECK(tolerance(nullptr, {src}, src) == 0);  // a reorder
  const ops::Transpose transpose({1, 0});
  CHECK(tolerance(&transpose, {src}, constant({3, 2}, 1000)) == 0);
  const ops::Concat concat(0);
  CHECK(tolerance(&concat, {src, src}, constant({4, 3}, 1000)) == 0);
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 1, 4, 4}});
  CHECK(tolerance(max_pool2d(x, {2, 2}).node().op.get(), {constant({1, 1, 4, 4}, 9)}, constant({1, 1, 2, 2}, 9)) == 0);
  const Value whole = cast(x, DType::i32);
  CHECK(tolerance(whole.node().op.get(), {constant({1, 1, 4, 4}, 9)}, Tensor(DType::i32, {1, 1, 4, 4})) == 0);
}

TEST_CASE("the order of a sum is within the tolerance, fewer bits or a lost term are not", "[compare]") {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const ops::Matmul matmul(false, false);
  for (const std::int64_t terms : {16, 1000}) {
    INFO(terms << " terms");
    Tensor a(DType::f32, {1, terms}), b(DType::f32, {terms, 32});
    for (float& x : a.values<float>()) x = uniform(random);
    for (float& x : b.values<float>()) x = uniform(random);
    const Tensor right = product(a, b, Way::right);
    const double allowed = tolerance(&matmul, {a, b}, right);
    CHECK(largest_difference(reversed_product(a, b), right) <= allowed);
    CHECK(largest_difference(product(a, b, Way::bfloat16), right) > allowed);
    CHECK(largest_difference(product(a, b, Way::one_term_short), right) > allowed);
  }
}

TEST_CASE("in 16 bits images and tokens may be rounded, vectors not", "[compare]") {
  const Tensor image = constant({2, 8, 3, 3}, -3), tokens = constant({16, 9}, -3), vector = constant({144}, -3);
  const double bf16 = unit_of(Precision::bf16), fp16 = unit_of(Precision::fp16);
  const ops::Concat concat(1);
  CHECK(tolerance(&concat, {image}, image) == 0);
  CHECK(tolerance(&concat, {image}, image, 0, Precision::tf32) == 0);
  CHECK(tolerance(&concat, {image}, image, 0, Precision::bf16) == Approx(8 * bf16 * 3));
  CHECK(tolerance(&concat, {image}, image, 0, Precision::fp16) == Approx(8 * fp16 * 3));
  CHECK(tolerance(&concat, {tokens}, tokens, 0, Precision::bf16) == Approx(8 * bf16 * 3));
  CHECK(tolerance(&concat, {vector}, vector, 0, Precision::bf16) == 0);

  const ops::Reduce sum(ops::ReduceKind::sum, {0, 2, 3});
  const Tensor sums = constant({1, 8, 1, 1}, -54);
  CHECK(tolerance(&sum, {image}, sums, 0, Precision::bf16) ==
        Approx(tolerance(&sum, {image}, sums) + bf16 * (18 * 3 + 54)).epsilon(1e-4));

  const ops::MaxPool pool(ops::PoolOptions{});
  const Tensor indices(DType::i32, {2, 8, 3, 3});
  CHECK(tolerance(&pool, {image}, indices, 1) == 0);
  CHECK(std::isinf(tolerance(&pool, {image}, indices, 1, Precision::bf16)));
}

TEST_CASE("in 16 bits an element beside a limit may take the other branch", "[compare]") {
  const Tensor image = constant({2, 8, 3, 3}, -3);
  const Scalar a = scalar::input(0), b = scalar::input(1);
  const ops::Pointwise clamped(Expression({scalar::select(scalar::less(a, 1.0F), b, 0.0F)}, 2), {DType::f32},
                               "clamped");
  const ops::Pointwise rectified(Expression({scalar::select(scalar::less(a, 0.0F), 0.0F, b)}, 2), {DType::f32}, "relu");
  CHECK(tolerance(&clamped, {image, image}, image, 0, Precision::bf16) >= 2 * 3);
  // Rounding keeps signs.
  CHECK(tolerance(&rectified, {image, image}, image, 0, Precision::bf16) < 0.1 * 3);
  CHECK(tolerance(&clamped, {image, image}, image) < 1e-3);  // fp32
}

}  // namespace concord::test
