// Times attention and its gradients in 16 bits on one device, on tokens that lie as linear maps leave them:
//
//   bench_attention DEVICE [PRECISION [DROPOUT]]
//
// Prints CSV, a line a problem and pass: batch, heads, tokens, width, causal, pass, microseconds, TFLOP/s, kernels. The
// backward pass is the gradient of queries and that of keys and values, without the sums of rows before them. A pass
// has 4·batch·heads·tokens²·width FLOPs forward and 10 backward, half of them if it is causal, as FlashAttention
// counts. bench/attention_vs_pytorch sets PyTorch beside it. PRECISION is bf16 (unless given) or fp16, DROPOUT is a
// probability. Exit code: 0, 1 where something fails, 2 for wrong usage.
#include "concord/ops/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/device/device.hpp"
#include "concord/opencl/formula/channels_last.hpp"

namespace {

using namespace concord;

struct Problem {
  std::int64_t batch, heads, tokens, width;
  bool causal;
};

/// A kernel with operands of its own, filled with random numbers.
class BoundKernel {
 public:
  BoundKernel(Device& device, const Operator& op, const std::vector<TensorSpec>& inputs, std::size_t vectors,
              Precision precision)
      : device_(device) {
    KernelRequest request{&op, inputs, {}, op.infer(inputs), precision};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_vector = i < vectors;
      request.input_layouts.push_back(
          is_vector ? opencl::channels_last(inputs[i], opencl::storage_number(precision), opencl::ChannelAxis::last)
                    : Layout{});
    }
    kernel_ = device.prepare(request).kernel;
    std::vector<Operand> sources, results;
    for (const TensorSpec& spec : inputs) sources.push_back(operand(spec.bytes()));
    for (const TensorSpec& spec : request.outputs) results.push_back(operand(spec.bytes()));
    launch_ = kernel_->bind(sources, results, operand(std::max<std::size_t>(kernel_->workspace(), 4)));
  }
  void enqueue() { launch_->enqueue(); }
  [[nodiscard]] std::string name() const { return kernel_->name(); }

 private:
  Operand operand(std::size_t bytes) {
    buffers_.push_back(device_.allocate(bytes));
    fill(*buffers_.back(), bytes);
    return {buffers_.back().get(), 0};
  }

  /// Random numbers: equal ones take less power, so that the device's clock is higher. Two bf16 numbers of N(0, 1),
  /// which are also a float of about the size of the second one.
  void fill(Buffer& buffer, std::size_t bytes) {
    constexpr std::size_t kNumbers = std::size_t{1} << 22U;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<std::uint16_t> numbers(std::min(kNumbers, bytes / 2));
    for (std::uint16_t& number : numbers) {
      number = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16U);
    }
    const std::span<const std::byte> all = std::as_bytes(std::span(numbers));
    for (std::size_t at = 0; at < bytes; at += all.size()) {
      device_.write(buffer, at, all.first(std::min(all.size(), bytes - at)));
    }
  }

  Device& device_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<BufferPtr> buffers_;
  std::unique_ptr<Launch> launch_;
};

/// The median of five runs of at least 20 ms.
double seconds_of(Device& device, std::vector<BoundKernel>& kernels) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](int count) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < count; ++i) {
      for (BoundKernel& kernel : kernels) kernel.enqueue();
    }
    device.finish();
    return std::chrono::duration<double>(Clock::now() - begin).count() / count;
  };
  timed(1);
  const int count = static_cast<int>(std::ceil(0.02 / timed(3)));
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(timed(std::max(count, 1)));
  std::ranges::nth_element(times, times.begin() + 2);
  return times[2];
}

void measure(Device& device, const Problem& p, Precision precision, float dropout) {
  const TensorSpec vectors{DType::f32, Shape{p.batch, p.tokens, p.heads, p.width}};
  const TensorSpec statistics{DType::f32, Shape{2, p.batch, p.heads, p.tokens}};
  const TensorSpec delta{DType::f32, Shape{p.batch, p.tokens, p.heads}};
  ops::AttentionForm form;
  form.scale = 1 / std::sqrt(static_cast<float>(p.width));
  form.causal = p.causal ? ops::Causal::first : ops::Causal::none;
  form.layout = ops::HeadLayout::tokens_first;
  form.dropout = dropout;
  const ops::Attention attention(form);
  const ops::AttentionBackwardQuery query(form);
  const ops::AttentionBackwardKeyValue key_value(form);
  std::vector<TensorSpec> inputs(3, vectors);
  std::vector<TensorSpec> of_gradients{vectors, vectors, vectors, vectors, statistics, delta};
  if (dropout > 0) {
    for (std::vector<TensorSpec>* operands : {&inputs, &of_gradients}) operands->push_back({DType::i32, Shape{4}});
  }
  for (const bool is_forward : {true, false}) {
    std::vector<BoundKernel> kernels;
    if (is_forward) {
      kernels.emplace_back(device, attention, inputs, 3, precision);
    } else {
      kernels.emplace_back(device, query, of_gradients, 4, precision);
      kernels.emplace_back(device, key_value, of_gradients, 4, precision);
    }
    std::string names = kernels[0].name();
    if (!is_forward) names += "; " + kernels[1].name();
    const double seconds = seconds_of(device, kernels);
    const double products = static_cast<double>(p.batch * p.heads * p.tokens * p.tokens * p.width);
    const double flops = (is_forward ? 4 : 10) * products * (p.causal ? 0.5 : 1);
    fmt::print("{},{},{},{},{},{},{:.1f},{:.0f},{}\n", p.batch, p.heads, p.tokens, p.width, p.causal ? "yes" : "no",
               is_forward ? "forward" : "backward", seconds * 1e6, flops / seconds * 1e-12, names);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 2 ? argv[2] : "bf16";
  const std::optional<float> dropout = argc > 3 ? number_in_text<float>(argv[3]) : 0.0F;
  if (argc < 2 || argc > 4 || (name != "bf16" && name != "fp16") || !dropout) {
    fmt::print(stderr, "usage: bench_attention DEVICE [bf16|fp16 [DROPOUT]]\n");
    return 2;
  }
  try {
    const DevicePtr device = Device::open(argv[1]);
    CONCORD_CHECK(device->info().backend == "opencl", ArgumentError, "{} is no OpenCL device", argv[1]);
    const Precision precision = precision_of(name);
    fmt::print("batch,heads,tokens,width,causal,pass,microseconds,teraflops,kernels\n");
    for (const std::int64_t tokens : {512, 1024, 2048, 4096, 8192}) {
      for (const bool causal : {false, true}) {
        measure(*device, {16384 / tokens, 16, tokens, 128, causal}, precision, *dropout);
        measure(*device, {16384 / tokens, 32, tokens, 64, causal}, precision, *dropout);
      }
    }
    measure(*device, {8, 12, 64, 64, false}, precision, *dropout);
    measure(*device, {8, 12, 1024, 64, true}, precision, *dropout);  // gpt2_small
  } catch (const Error& error) {
    fmt::print(stderr, "bench_attention: {}\n", error.what());
    return 1;
  }
}
