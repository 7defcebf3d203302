// Products in every precision: as exact as it promises, and no more exact than that where the device has units for it.
#include <algorithm>
#include <array>
#include <cmath>

#include "concord/device/kernel_alternatives.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr std::int64_t kRows = 200, kColumns = 136, kDepth = 320;

Tensor waves(Shape shape, double step) {
  Tensor tensor(DType::f32, std::move(shape));
  double at = 0.3;
  for (float& x : tensor.values<float>()) {
    x = static_cast<float>(std::sin(at));
    at += step;
  }
  return tensor;
}

/// Whether the product is computed so where the option gemm says it; the CPU's has one way.
bool has_way(const DevicePtr& device, const std::string& implementation) {
  const KernelAlternatives* alternatives = device->alternatives();
  if (alternatives == nullptr) return true;
  const std::vector<KernelAlternative> all = alternatives->list();
  return std::ranges::find(all, "product " + implementation, &KernelAlternative::name) != all.end();
}

}  // namespace

TEST_CASE("a product is as exact as its precision says", "[opencl][precision]") {
  const Tensor a = waves({kRows, kDepth}, 1.37), b = waves({kDepth, kColumns}, 2.11);
  const Build build = [](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1])}; };
  const std::vector<Input> inputs{{to_array(a)}, {to_array(b)}};
  for (const DevicePtr& device : devices()) {
    const std::vector<std::string>& known = device->info().precisions;
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
      for (const char* implementation : {"mma", "wgmma", "tma", "scaled", "wave"}) {
        INFO(name_of(precision) << " by " << implementation << " on " << device->info().id);
        const DebugOption forced("gemm", implementation);
        const double error = error_of_product(a, b, run(device, inputs, build, {.precision = precision})[0]);
        CHECK(error < 8 * 0x1p-24 + 2.1 * unit_of(precision));
        const bool has_units = std::ranges::find(known, name_of(precision)) != known.end();
        const bool is_in_16_bits = precision == Precision::bf16 || precision == Precision::fp16;
        const bool is_known =
            is_in_16_bits ? std::string_view(implementation) != "scaled" : precision == Precision::tf32;
        if (has_units && is_known && has_way(device, implementation)) CHECK(error > 0.02 * unit_of(precision));
      }
    }
  }
}

TEST_CASE("attention and convolutions take a precision", "[opencl][precision]") {
  const Build build = [](const std::vector<Value>& x) {
    return std::vector{conv2d(x[0], x[1], {.padding = 1}), attention(x[2], x[3], x[3])};
  };
  const std::vector<Input> inputs{{to_array(waves({2, 16, 9, 9}, 0.7))},
                                  {to_array(waves({24, 16, 3, 3}, 1.9))},
                                  {to_array(waves({2, 2, 33, 64}, 1.3))},
                                  {to_array(waves({2, 2, 40, 64}, 2.3))}};
  // What a result is the sum of: 144 products of numbers up to 1; a mean of such numbers, whose weights come of scores
  // of 64 products.
  constexpr std::array<double, 2> kSizes{144, 4};
  for (const DevicePtr& device : devices()) {
    const std::vector<Tensor> exact = run(device, inputs, build);
    for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16}) {
      for (const char* implementation : {"mma", "wgmma", "tma", "scaled"}) {
        const DebugOption forced("gemm", implementation);
        const std::vector<Tensor> results = run(device, inputs, build, {.precision = precision});
        for (std::size_t i = 0; i < results.size(); ++i) {
          INFO("result " << i << ", " << name_of(precision) << " by " << implementation << " on " << device->info().id);
          double error = 0;
          for (std::size_t k = 0; k < results[i].values<float>().size(); ++k) {
            error = std::max(error, std::abs(static_cast<double>(exact[i].values<float>()[k]) -
                                             static_cast<double>(results[i].values<float>()[k])));
          }
          CHECK(error < unit_of(precision) * kSizes.at(i));
        }
      }
    }
  }
}

}  // namespace concord::test
