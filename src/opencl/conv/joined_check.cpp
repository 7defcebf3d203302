// The convolutions of the check, their expected gradients, and the run.
#include "concord/opencl/conv/joined_check.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "concord/core/bf16.hpp"
#include "concord/core/log.hpp"
#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::size_t kMembers = 3;

/// Of several taps, strides and numbers of channels; one has a k of several tiles, which can be cut.
std::array<ops::ConvSizes, kMembers> convolutions() {
  const auto of = [](const Shape& src, const Shape& weights, std::int64_t stride, std::int64_t padding) {
    const ops::Spatial both{0, padding, padding};
    return ops::conv_sizes(src, weights, {.stride = {1, stride, stride}, .padding = both, .padding_after = both});
  };
  return {of({2, 16, 9, 9}, {24, 16, 3, 3}, 1, 1), of({2, 72, 11, 10}, {40, 72, 1, 1}, 2, 0),
          of({1, 8, 20, 8}, {16, 8, 3, 3}, 2, 1)};
}

/// A whole number up to 3 in 16 bits.
std::uint16_t bits_of(float number, Precision precision) {
  if (precision == Precision::bf16) return to_bf16(number).bits;
  constexpr std::array<std::uint16_t, 4> kHalves{0x0000, 0x3C00, 0x4000, 0x4200};
  const std::uint16_t sign = std::signbit(number) ? 0x8000 : 0;
  return kHalves.at(static_cast<std::size_t>(std::abs(number))) | sign;
}

/// The images with channels inside, and the gradient that they make.
struct Factors {
  std::vector<float> src, diff;
  std::vector<float> gradient;
};

Factors factors_of(const ops::ConvSizes& s) {
  Factors f{whole_numbers(s.n * s.c * s.src_plane(), 5), whole_numbers(s.n * s.o * s.dst_plane(), 11), {}};
  for (std::int64_t o = 0; o < s.o; ++o) {
    for (std::int64_t i = 0; i < s.c * s.taps(); ++i) {
      const std::int64_t c = i / s.taps(), tap_y = i % s.taps() / s.kw, tap_x = i % s.kw;
      float sum = 0;
      for (std::int64_t place = 0; place < s.n * s.dst_plane(); ++place) {
        const std::int64_t image = place / s.dst_plane(), in_image = place % s.dst_plane();
        const std::int64_t y = in_image / s.ow * s.options.stride[1] + tap_y - s.options.padding[1];
        const std::int64_t x = in_image % s.ow * s.options.stride[2] + tap_x - s.options.padding[2];
        if (y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
        sum += f.diff[size(place * s.o + o)] * f.src[size(((image * s.h + y) * s.w + x) * s.c + c)];
      }
      f.gradient.push_back(sum);
    }
  }
  return f;
}

class DeviceMemory {
 public:
  explicit DeviceMemory(Context& context) : context_(context) {}

  Operand numbers(const std::vector<float>& values, Precision precision) {
    std::vector<std::uint16_t> bits;
    for (const float value : values) bits.push_back(bits_of(value, precision));
    return of(bits.data(), bits.size() * sizeof(std::uint16_t));
  }
  /// Memory that a kernel reads before it writes it is NaN.
  Operand nothing(std::size_t bytes) {
    std::vector<float> values(bytes / sizeof(float) + 1, std::numeric_limits<float>::quiet_NaN());
    return of(values.data(), values.size() * sizeof(float));
  }

 private:
  Operand of(void* values, std::size_t bytes) {
    cl_int status = CL_SUCCESS;
    MemoryHandle memory(
        clCreateBuffer(context_.context().get(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, values, &status));
    check_allocation(status, "clCreateBuffer", context_.name());
    buffers_.push_back(std::make_unique<OpenClBuffer>(std::move(memory), bytes, accounting_));
    return {buffers_.back().get(), 0};
  }

  Context& context_;
  std::shared_ptr<Accounting> accounting_ = std::make_shared<Accounting>();
  std::vector<std::unique_ptr<OpenClBuffer>> buffers_;
};

bool are_right(Context& context, Precision precision, std::int64_t parts) {
  DeviceMemory memory(context);
  std::vector<Gemm> products;
  std::vector<Factors> factors;
  std::vector<Operand> inputs, outputs;
  for (const ops::ConvSizes& s : convolutions()) {
    const std::size_t m = products.size();
    Gemm& gemm = products.emplace_back(conv_backward_weights_gemm(s));
    gemm.precision = precision;
    gemm.a.is_channels_last = gemm.b.is_channels_last = true;
    gemm.patch.inside = false;
    gemm.a.buffer = input(2 * m + 1);
    gemm.b.buffer = input(2 * m);
    gemm.c.buffer = output(m);
    factors.push_back(factors_of(s));
    inputs.insert(inputs.end(),
                  {memory.numbers(factors[m].src, precision), memory.numbers(factors[m].diff, precision)});
    outputs.push_back(memory.nothing(factors[m].gradient.size() * sizeof(float)));
  }
  const std::unique_ptr<Kernel> kernel = prepare_together_in(context, products, parts, "check");
  kernel->bind(inputs, outputs, memory.nothing(kernel->workspace()))->enqueue();
  for (std::size_t m = 0; m < kMembers; ++m) {
    std::vector<float> found(factors[m].gradient.size());
    check(clEnqueueReadBuffer(context.queue().get(), memory_of(outputs[m].buffer), CL_TRUE, 0,
                              found.size() * sizeof(float), found.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer", context.name());
    if (found != factors[m].gradient) return false;
  }
  return true;
}

}  // namespace

bool gradients_are_right_together(Context& context, Precision precision) {
  const auto warn = [&](std::string_view why) {
    log(LogLevel::warning, fmt::format("{}: gradients of weights in one launch are not used: {}", context.name(), why));
  };
  try {
    const bool is_right = are_right(context, precision, 1) && are_right(context, precision, 2);
    if (!is_right) warn("a wrong result");
    return is_right;
  } catch (const std::exception& error) {
    warn(error.what());
    return false;
  }
}

}  // namespace concord::opencl
