// Epilogues: what the CPU backend fuses into products and convolutions, and that NaN survives a fused relu.
#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/ops/conv.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

const Scalar kResult = scalar::input(0), kFirst = scalar::input(1), kSecond = scalar::input(2);

bool supported(const Operator& op, const std::vector<TensorSpec>& inputs, const Scalar& formula,
               const std::vector<TensorSpec>& extra) {
  const Expression expression({formula}, static_cast<int>(extra.size()) + 1);
  return cpu_device()->supports_epilogue(op, inputs, op.infer(inputs)[0], expression, extra, Precision::fp32);
}

TensorSpec f32(Shape shape) { return {DType::f32, std::move(shape)}; }

}  // namespace

TEST_CASE("bias, residual and relu are fused, other chains are not", "[cpu]") {
  const ops::Matmul matmul(false, true);
  const std::vector<TensorSpec> operands{f32({4, 6}), f32({5, 6})};
  const TensorSpec bias = f32({5}), whole = f32({4, 5});
  CHECK(supported(matmul, operands, scalar::max(kResult + kFirst, 0.0F), {bias}));
  CHECK(supported(matmul, operands, scalar::max(kFirst + kResult, 0.0F), {f32({1, 5})}));
  CHECK(supported(matmul, operands, scalar::max(kResult + kFirst + kSecond, 0.0F), {bias, whole}));
  CHECK(supported(matmul, operands, kResult * 0.5F + kFirst, {whole}));
  CHECK(supported(matmul, operands, kResult * 0.5F + 0.25F, {}));
  CHECK(supported(matmul, operands, kResult * 0.5F * 3.0F - 0.25F, {}));
  CHECK(supported(matmul, operands, (kResult + kFirst) * 0.5F + kSecond, {whole, whole}));
  // A second step with numbers of its own, which oneDNN 2.6 would give those of the last.
  CHECK_FALSE(supported(matmul, operands, (kResult + 0.25F) * 0.5F, {}));
  CHECK_FALSE(supported(matmul, operands, kResult * 0.5F + kFirst + 0.25F, {whole}));
  CHECK_FALSE(supported(matmul, operands, kResult * 1e-30F * 1e-30F, {}));
  CHECK_FALSE(supported(matmul, operands, scalar::max(kResult, 0.0F) + kFirst, {bias}));
  CHECK_FALSE(supported(matmul, operands, kFirst - kResult, {bias}));
  CHECK_FALSE(supported(matmul, operands, kResult * kResult, {}));
  // The result once more, which lies where the other steps write.
  CHECK_FALSE(supported(matmul, operands, kResult * kFirst + kResult, {bias}));
  CHECK_FALSE(supported(matmul, operands, (kResult + 1.0F) * kResult, {}));
  CHECK_FALSE(supported(matmul, operands, kResult * 0.5F + kResult, {}));
  CHECK_FALSE(supported(matmul, {f32({1, 6}), f32({5, 6})}, kResult + kResult * kFirst, {bias}));
  CHECK_FALSE(supported(matmul, operands, scalar::tanh(kResult + kFirst), {bias}));
  CHECK_FALSE(supported(matmul, operands, kResult + kFirst, {f32({4, 1})}));
  CHECK_FALSE(supported(matmul, operands, kResult + kFirst, {{DType::i32, Shape{5}}}));
}

TEST_CASE("a fused operator gives what its parts give", "[cpu]") {
  const Tensor x = normal_tensor(Shape{2, 3, 7, 6}, 1), weights = normal_tensor(Shape{5, 3, 3, 3}, 2);
  const Tensor bias = normal_tensor(Shape{5, 1, 1}, 3), residual = normal_tensor(Shape{2, 5, 5, 4}, 4);
  const auto conv = std::make_shared<ops::Conv>(ops::ConvOptions{});
  const Expression expression({scalar::max(kResult + kFirst + kSecond, 0.0F)}, 3);
  const ops::Fused fused(conv, 2, expression, "conv+bias+add+relu");
  for (const bool last : {false, true}) {
    const Tensor base = run_kernel(*conv, {x, weights}, last).outputs[0];
    const Tensor got = run_kernel(fused, {x, weights, bias, residual}, last).outputs[0];
    for (std::size_t i = 0; i < got.values<float>().size(); ++i) {
      const float sum = base.values<float>()[i] + bias.values<float>()[i / 20 % 5] + residual.values<float>()[i];
      REQUIRE(got.values<float>()[i] == Approx(std::max(sum, 0.0F)).margin(1e-5));
    }
  }
}

TEST_CASE("a convolution adds to the image that lies in its result", "[cpu]") {
  const ops::Fused fused(std::make_shared<ops::Conv>(ops::ConvOptions{}), 2,
                         Expression({scalar::max(kResult + kFirst + kSecond, 0.0F)}, 3), "conv+bias+add+relu");
  const std::vector<Tensor> given{normal_tensor(Shape{2, 16, 6, 6}, 1), normal_tensor(Shape{32, 16, 1, 1}, 2),
                                  normal_tensor(Shape{32, 1, 1}, 3), normal_tensor(Shape{2, 32, 6, 6}, 4)};
  for (const bool last : {false, true}) {
    const KernelRun apart = run_kernel(fused, given, last),
                    over = run_kernel(fused, given, last, Precision::fp32, true);
    CHECK(over.overwritten == 3);
    CHECK(apart.kernel == over.kernel);
    CHECK(std::ranges::equal(apart.outputs[0].values<float>(), over.outputs[0].values<float>()));
  }
}

TEST_CASE("a chain of steps with numbers gives what its steps give", "[cpu]") {
  const Tensor a = normal_tensor(Shape{17, 33}, 1), b = normal_tensor(Shape{33, 20}, 2);
  const Tensor image = normal_tensor(Shape{2, 3, 7, 6}, 3), weights = normal_tensor(Shape{16, 3, 3, 3}, 4);
  const auto matmul = std::make_shared<ops::Matmul>(false, false);
  const auto conv = std::make_shared<ops::Conv>(ops::ConvOptions{});
  const std::vector<Scalar> chains{kResult * 0.5F + 0.25F, kResult * 0.5F * 3.0F, kResult * 0.5F - 2.0F,
                                   scalar::max(kResult * -2.0F + 0.25F, 0.0F),
                                   scalar::max(kResult * 0.5F * 3.0F + 1.0F, 0.0F)};
  for (const Scalar& chain : chains) {
    const Expression expression({chain}, 1);
    INFO(expression.str());
    const auto check = [&](const std::shared_ptr<const Operator>& op, const std::vector<Tensor>& inputs) {
      const Tensor base = run_kernel(*op, inputs, false).outputs[0];
      const Tensor got = run_kernel(ops::Fused(op, 2, expression, "chain"), inputs, false).outputs[0];
      for (std::size_t i = 0; i < got.values<float>().size(); ++i) {
        const float given[] = {base.values<float>()[i]};
        REQUIRE(got.values<float>()[i] == Approx(expression.evaluate(0, given)).margin(1e-5));
      }
    };
    check(matmul, {a, b});
    check(conv, {image, weights});
  }
}

TEST_CASE("a fused relu keeps NaN", "[cpu]") {
  Tensor x = normal_tensor(Shape{4, 8}, 1);
  x.values<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const auto matmul = std::make_shared<ops::Matmul>(false, true);
  const ops::Fused fused(matmul, 2, Expression({scalar::max(kResult + kFirst, 0.0F)}, 2), "matmul+bias+relu");
  const Tensor y =
      run_kernel(fused, {x, normal_tensor(Shape{16, 8}, 2), normal_tensor(Shape{16}, 3)}, false).outputs[0];
  for (std::size_t i = 0; i < 16; ++i) CHECK(std::isnan(y.values<float>()[i]));
  CHECK_FALSE(std::isnan(y.values<float>()[16]));
}

}  // namespace concord::test
