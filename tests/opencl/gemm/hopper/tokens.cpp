// Products of tokens where they lie: their plans, and their results at the edges of tiles and with cut tiles.
#include "concord/opencl/gemm/hopper/tokens.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "opencl/context_of.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using opencl::TokensPlan;
using opencl::TokensProduct;

constexpr std::int64_t kUnits = 132;

TokensPlan plan_of(std::int64_t rows, std::int64_t columns, std::int64_t k) {
  return opencl::tokens_plan(TokensProduct{.rows = rows, .columns = columns, .k = k}, kUnits);
}

std::vector<DevicePtr> devices_with_tokens() {
  std::vector<DevicePtr> found = opencl_devices();
  std::erase_if(found, [](const DevicePtr& device) {
    const std::vector<KernelAlternative> all = context_of(device).alternatives().list();
    return std::ranges::none_of(all, [](const auto& one) { return one.name == opencl::alternative::kTokensProduct; });
  });
  if (found.empty()) WARN("skipped: no NVIDIA GPU of the Hopper generation");
  return found;
}

/// In parts of the largest number expected.
double largest_error(const Tensor& result, const Tensor& expected) {
  const Array got = to_array(result), right = to_array(expected);
  double error = 0, largest = 1e-30;
  for (std::size_t k = 0; k < got.values.size(); ++k) {
    error = std::max(error, std::isnan(got.values[k]) ? 1e30 : std::abs(got.values[k] - right.values[k]));
    largest = std::max(largest, std::abs(right.values[k]));
  }
  return error / largest;
}

/// Runs with all operands as tokens and compares with fp32; two runs give the same bits. `products`: how many kernels
/// are those of tokens.
void check_products(const std::vector<Input>& inputs, const Build& build, std::ptrdiff_t products, double tolerance) {
  for (const DevicePtr& device : devices_with_tokens()) {
    const std::vector<Tensor> expected = run(device, inputs, build);
    opencl::OpenClAlternatives& alternatives = context_of(device).alternatives();
    alternatives.prefer(opencl::alternative::kTokensProduct);
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      INFO(name_of(precision) << " on " << device->info().id);
      std::set<std::string> taken;
      const std::int64_t before = alternatives.uses(opencl::alternative::kTokensProduct);
      const DevicePtr offering = std::make_shared<OfferingDevice>(device, taken, true, opencl::ChannelAxis::last);
      const std::vector<Tensor> results = run(offering, inputs, build, {.precision = precision});
      CHECK(alternatives.uses(opencl::alternative::kTokensProduct) - before == products);
      const std::vector<Tensor> again = run(offering, inputs, build, {.precision = precision});
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("result " << i);
        CHECK(largest_error(results[i], expected[i]) <= tolerance);
        CHECK(largest_error(again[i], results[i]) == 0);
      }
    }
    alternatives.prefer("");
  }
}

}  // namespace

TEST_CASE("products of tokens: whole rounds of tiles are not cut", "[opencl][gemm]") {
  const TokensPlan wide = plan_of(8192, 768, 3072);  // 256 tiles of 128 x 192: two rounds
  CHECK(wide.columns == 192);
  CHECK(wide.cut == 0);
  CHECK(wide.groups == kUnits);
  CHECK(plan_of(12608, 2304, 768).columns == 192);  // 1188 tiles: nine rounds
  const TokensPlan small = plan_of(40, 24, 64);
  CHECK(small.groups == 1);
  CHECK(small.cut == 0);
}

TEST_CASE("products of tokens: few tiles are cut along k", "[opencl][gemm]") {
  const TokensPlan square = plan_of(768, 768, 8192);  // 36 tiles in three parts
  CHECK(square.columns == 128);
  CHECK(square.cut == 36);
  CHECK(square.groups == 108);
  const TokensPlan rest = plan_of(3072, 768, 8192);  // 144 tiles: a round, and twelve that all share
  CHECK(rest.columns == 128);
  CHECK(rest.cut == 12);
  CHECK(rest.groups == kUnits);
  // A cut is not worth it for a short k.
  CHECK(plan_of(768, 768, 128).cut == 0);
}

TEST_CASE("products of tokens: gradients of weights, at the edges of tiles", "[opencl][tokens]") {
  struct Sizes {
    std::int64_t tokens, left, right;
  };
  // Less than a tile; a rest of rows, of columns and of k; exact tiles; tiles in parts, and a rest that all groups
  // share.
  for (const Sizes& s : {Sizes{8, 8, 8}, Sizes{70, 24, 40}, Sizes{333, 200, 136}, Sizes{256, 256, 384},
                         Sizes{129, 136, 200}, Sizes{2100, 264, 392}, Sizes{1500, 1544, 1672}}) {
    INFO(s.tokens << " tokens, " << s.left << " x " << s.right);
    check_products(
        {{integers({s.tokens, s.left}, 1)}, {integers({s.tokens, s.right}, 2)}},
        [](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1], true, false)}; }, 1, 0);
  }
}

TEST_CASE("products of tokens: a term added to a gradient of weights", "[opencl][tokens]") {
  check_products(
      {{integers({300, 200}, 1)}, {integers({300, 136}, 2)}, {integers({200, 136}, 3)}},
      [](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1], true, false) + x[2]}; }, 1, 0);
}

TEST_CASE("products of tokens: linear maps, at the edges of tiles", "[opencl][tokens]") {
  struct Sizes {
    std::int64_t tokens, in, out;
  };
  for (const Sizes& s : {Sizes{8, 8, 8}, Sizes{70, 40, 24}, Sizes{333, 104, 136}, Sizes{256, 128, 384},
                         Sizes{129, 72, 200}, Sizes{130, 2000, 264}}) {
    for (const bool transposed : {true, false}) {
      INFO(s.tokens << " tokens, " << s.in << " to " << s.out << ", transposed " << transposed);
      const Shape weights = transposed ? Shape{s.out, s.in} : Shape{s.in, s.out};
      check_products(
          {{normal({s.tokens, s.in}, 1)}, {normal(weights, 2)}},
          [&](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1], false, transposed)}; }, 1, 0.01);
      check_products(
          {{normal({s.tokens, s.in}, 1)},
           {normal(weights, 2)},
           {normal({s.out}, 3)},
           {normal({s.tokens, s.out}, 4)},
           {normal({s.tokens, 1}, 5)}},
          [&](const std::vector<Value>& x) {
            return std::vector{(matmul(x[0], x[1], false, transposed) + x[2]) * x[4] + x[3]};
          },
          1, 0.015);
    }
  }
}

TEST_CASE("products of tokens: a vocabulary that is no multiple of eight", "[opencl][tokens]") {
  // Logits, their loss and its gradients: of the tokens, the embedding, which has a second one, and a bias.
  for (const std::int64_t words : {1031, 1030}) {
    const bool has_bias = words % 2 == 0;
    INFO(words << " words");
    std::vector<double> targets;
    for (std::int64_t i = 0; i < 160; ++i) targets.push_back(static_cast<double>(i * 37 % words));
    targets[3] = static_cast<double>(words) - 1;
    check_products(
        {{normal({2, 80, 136}, 1)},
         {normal({words, 136}, 2, 0.1)},
         {Array({160}, targets), DType::i32},
         {normal({words}, 3)}},
        [&](const std::vector<Value>& x) {
          Value logits = matmul(x[0], x[1], false, true);
          if (has_bias) logits = logits + x[3];
          const Value losses = cross_entropy_rows(reshape(logits, Shape{160, words}), x[2]);
          std::vector<Value> results{logits, losses};
          std::vector<Value> wanted{x[0], x[1]};
          if (has_bias) wanted.push_back(x[3]);
          for (const Value& g : gradient(sum(losses) + sum(x[1] * x[1]), wanted)) results.push_back(g);
          return results;
        },
        3, 0.04);
  }
}

TEST_CASE("padded tokens: moved to rows and back", "[opencl][tokens]") {
  using opencl::padded_tokens;
  CHECK(padded_tokens({DType::f32, {4, 1024}}, DType::bf16) == nullptr);
  CHECK(padded_tokens({DType::f32, {4, 10}}, DType::bf16) == nullptr);
  CHECK(padded_tokens({DType::f32, {1 << 21, 1025}}, DType::bf16) == nullptr);
  const Layout layout = padded_tokens({DType::f32, {2, 3, 1029}}, DType::bf16);
  REQUIRE(layout != nullptr);
  CHECK(layout->bytes() == std::size_t{2} * 3 * 1032 * 2);
  CHECK(same_layout(layout->viewed_as({DType::f32, {6, 1029}}), padded_tokens({DType::f32, {6, 1029}}, DType::bf16)));
  CHECK(layout->viewed_as({DType::f32, {3, 2058}}) == nullptr);
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    const TensorSpec spec{DType::f32, {6, 1029}};
    Tensor numbers(spec);
    const Array whole = integers(spec.shape, 5);
    std::ranges::transform(whole.values, numbers.values<float>().begin(),
                           [](double value) { return static_cast<float>(value); });
    const auto buffer = [&](std::size_t bytes) { return device->allocate(bytes); };
    const auto rows = buffer(spec.bytes()), padded = buffer(layout->bytes()), back = buffer(spec.bytes());
    device->write(*rows, 0, numbers.bytes());
    const Layout flat = layout->viewed_as(spec);
    const std::unique_ptr<Kernel> into = device->prepare_reorder(spec, nullptr, flat);
    const std::unique_ptr<Kernel> out = device->prepare_reorder(spec, flat, nullptr);
    into->bind(std::vector<Operand>{{rows.get(), 0}}, std::vector<Operand>{{padded.get(), 0}}, {})->enqueue();
    out->bind(std::vector<Operand>{{padded.get(), 0}}, std::vector<Operand>{{back.get(), 0}}, {})->enqueue();
    Tensor result(spec);
    device->read(*back, 0, result.bytes());
    CHECK(largest_error(result, numbers) == 0);
  }
}

}  // namespace concord::test
