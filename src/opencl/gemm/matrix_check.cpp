// The problems of the check, their expected results, and the run.
#include "concord/opencl/gemm/matrix_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "concord/core/log.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/gemm/patch_tables.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr float kUntouched = -1000;  // of a result, where nothing is written

CheckedProduct dense(std::int64_t m, std::int64_t n, std::int64_t k, bool a_along_k, bool b_along_k) {
  return {dense_gemm(m, n, k, a_along_k, b_along_k), m * k, k * n, m * n};
}

std::vector<CheckedProduct> products(const Context& context) {
  std::vector<CheckedProduct> list{dense(128, 128, 128, true, false), dense(70, 150, 99, false, true),
                                   dense(96, 200, 160, true, true),   dense(66, 130, 64, false, false),
                                   dense(64, 72, 2000, true, false),  dense(68, 44, 100, true, true),
                                   dense(68, 44, 74, false, false)};
  if (const auto more = context.products_to_check()) {
    for (CheckedProduct& product : more()) list.push_back(std::move(product));
  }
  return list;
}

std::int64_t blocked(std::int64_t i, std::int64_t block, std::int64_t outer, std::int64_t stride) {
  return block == 0 ? i * stride : i / block * outer + i % block;
}

std::int64_t result_column(const GemmResult& c, std::int64_t n) {
  if (!c.is_stepped()) return blocked(n, c.block, c.outer, 1);
  const std::int64_t i = n % c.block;
  return n / c.block * c.outer + c.first + i / c.page * c.step[0] + i % c.page / c.line * c.step[1] +
         i % c.line * c.step[2];
}

/// The element of the right operand, or 0.
class RightElements {
 public:
  RightElements(const Gemm& gemm, const std::vector<float>& values) : gemm_(gemm), values_(values) {
    if (gemm.b.is_patch) tables_ = patch_tables(gemm);
  }
  [[nodiscard]] float at(std::int64_t k, std::int64_t n) const {
    if (!gemm_.b.is_patch) return values_[size(k * gemm_.b.k + n * gemm_.b.n)];
    const std::int64_t tap_index = gemm_.b.along_k ? n : k, place_index = gemm_.b.along_k ? k : n;
    const PatchEntry &tap = tables_.taps[size(tap_index)], &place = tables_.places[size(place_index % tables_.block)];
    if ((tap[1] & place[1]) != tap[1]) return 0;
    return values_[size(tap[0] + place[0] + place_index / tables_.block * tables_.plane)];
  }

 private:
  const Gemm& gemm_;
  const std::vector<float>& values_;
  PatchTables tables_;
};

std::vector<float> right_result(const CheckedProduct& product, const std::vector<float>& a,
                                const std::vector<float>& b) {
  const Gemm& g = product.gemm;
  const RightElements right(g, b);
  std::vector<float> c(size(product.c_elements), kUntouched);
  for (std::int64_t n = 0; n < g.n; ++n) {
    for (std::int64_t m = 0; m < g.m; ++m) {
      float sum = 0;
      for (std::int64_t k = 0; k < g.k; ++k) {
        sum += a[size(m * g.a.row + blocked(k, g.a.block, g.a.outer, g.a.k))] * right.at(k, n);
      }
      c[size(m * g.c.row + result_column(g.c, n))] = sum;
    }
  }
  return c;
}

struct Factors {
  std::vector<float> a, b;
};
/// Scales the left factors by `unit` and the right ones by its inverse: the result stays the same.
Factors factors_of(const CheckedProduct& product, float unit) {
  return {whole_numbers(product.a_elements, 5, unit), whole_numbers(product.b_elements, 11, 1 / unit)};
}

/// Runs the kernel and returns C.
std::vector<float> result_of(Context& context, const CheckedProduct& product, const Kernel& kernel, Factors factors) {
  auto& [a, b] = factors;
  std::vector<float> c(size(product.c_elements), kUntouched);
  const auto accounting = std::make_shared<Accounting>();
  const auto buffer_of = [&](std::size_t bytes, void* values) {
    cl_int status = CL_SUCCESS;
    const cl_mem_flags flags = values == nullptr ? CL_MEM_READ_WRITE : CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    MemoryHandle memory(clCreateBuffer(context.context().get(), flags, bytes, values, &status));
    check_allocation(status, "clCreateBuffer", context.name());
    return std::make_unique<OpenClBuffer>(std::move(memory), bytes, accounting);
  };
  const auto left = buffer_of(a.size() * 4, a.data()), right = buffer_of(b.size() * 4, b.data());
  const auto result = buffer_of(c.size() * 4, c.data());
  // Memory that a kernel reads before it writes it is NaN.
  std::vector<float> nothing(kernel.workspace() / sizeof(float) + 1, std::numeric_limits<float>::quiet_NaN());
  const auto workspace = buffer_of(nothing.size() * sizeof(float), nothing.data());
  const std::array<Operand, 2> inputs{{{left.get(), 0}, {right.get(), 0}}};
  const std::array<Operand, 1> outputs{{{result.get(), 0}}};
  kernel.bind(inputs, outputs, {workspace.get(), 0})->enqueue();
  check(clEnqueueReadBuffer(context.queue().get(), result->memory(), CL_TRUE, 0, c.size() * 4, c.data(), 0, nullptr,
                            nullptr),
        "clEnqueueReadBuffer", context.name());
  return c;
}

bool runs_right(Context& context, const CheckedProduct& product, const Kernel& kernel) {
  // Numbers this far from 1 are not scaled (gemm/hopper/measure.cl).
  constexpr float kBeyondScales = 0x1p100F;
  const Factors factors = factors_of(product, 1);
  const std::vector<float> right = right_result(product, factors.a, factors.b);
  if (result_of(context, product, kernel, factors) != right) return false;
  const bool has_range = product.gemm.precision == Precision::fp32 || product.gemm.precision == Precision::tf32;
  return !has_range || result_of(context, product, kernel, factors_of(product, kBeyondScales)) == right;
}

}  // namespace

std::vector<float> whole_numbers(std::int64_t count, std::int64_t factor, float unit) {
  std::vector<float> values(size(count));
  for (std::int64_t i = 0; i < count; ++i) values[size(i)] = static_cast<float>(i * factor % 7 - 3) * unit;
  return values;
}

bool multiplies_right(Context& context, std::string_view units, Precision precision,
                      const CheckedPreparation& prepare) {
  try {
    std::vector<CheckedProduct> list = products(context);
    for (CheckedProduct& product : list) product.gemm.precision = precision;
    std::vector<std::unique_ptr<Kernel>> kernels;  // all prepared first, so that their programs are built together
    for (std::size_t i = 0; i < list.size(); ++i) kernels.push_back(prepare(context, list[i].gemm, i));
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (kernels[i] == nullptr || runs_right(context, list[i], *kernels[i])) continue;
      const Gemm& gemm = list[i].gemm;
      log(LogLevel::warning, fmt::format("{}: {} give a wrong {} x {} x {} matrix multiplication ({}); not used",
                                         context.name(), units, gemm.m, gemm.n, gemm.k, kernels[i]->name()));
      return false;
    }
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::warning, fmt::format("{}: {} are not used: {}", context.name(), units, error.what()));
    return false;
  }
}

}  // namespace concord::opencl
