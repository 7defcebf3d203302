// Computes the product with the chain and without, by the kernels that a program would use. Plain loops then apply the
// chain to the second result.
#include "post_ops_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "concord/core/log.hpp"
#include "concord/core/philox.hpp"
#include "signals.hpp"

namespace concord::cpu {
namespace {

using dnnl::algorithm;

/// Row-major.
using Values = std::vector<float>;

constexpr std::string_view kOfOneDnn = "oneDNN ";

Values drawn(const Shape& shape, std::uint64_t seed) {
  const Philox stream(seed, philox_purpose("post-operations"));
  Values values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * stream.uniform(i) - 1;
  return values;
}

/// Memory in a layout, as a kernel takes it.
struct Placed {
  Placed(const TensorSpec& spec, const Layout& layout, const Desc& plain)
      : memory(layout ? desc_of(spec, layout) : plain, engine()),
        buffer(std::max<std::size_t>(memory.get_desc().get_size(), 1),
               {static_cast<std::byte*>(memory.get_data_handle()), [](std::byte*) {}}) {}
  dnnl::memory memory;
  HostBuffer buffer;
};

void reorder(dnnl::memory& from, dnnl::memory& to) {
  const SignalsBlocked signals;  // for threads that oneDNN starts
  dnnl::reorder(from, to).execute(stream(), from, to);
  stream().wait();
}

/// What the kernel makes of row-major numbers, row-major.
Values result_of(const PreparedKernel& prepared, const KernelRequest& request, std::span<Values> numbers) {
  std::deque<Placed> placed;
  const auto plain_of = [](const TensorSpec& spec, const Layout& layout) {
    // Weights in a layout may have dimensions of their own, groups apart.
    return layout ? plain_desc(spec.dtype, dims_of(desc_of(spec, layout))) : plain_desc(spec);
  };
  std::vector<Operand> inputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Layout& layout = prepared.input_layouts[i];
    const Desc plain = plain_of(request.inputs[i], layout);
    dnnl::memory from(plain, engine(), numbers[i].data());
    reorder(from, placed.emplace_back(request.inputs[i], layout, plain).memory);
    inputs.push_back({&placed.back().buffer, 0});
  }
  const TensorSpec& spec = request.outputs[0];
  const Layout& layout = prepared.output_layouts[0];
  const Desc plain = plain_of(spec, layout);
  Placed dst(spec, layout, plain);
  const TensorSpec bytes{DType::u8,
                         Shape{static_cast<std::int64_t>(std::max<std::size_t>(prepared.kernel->workspace(), 1))}};
  Placed workspace(bytes, nullptr, plain_desc(bytes));
  const Operand output{&dst.buffer, 0};
  prepared.kernel->bind(inputs, {&output, 1}, {&workspace.buffer, 0})->enqueue();
  Values result(static_cast<std::size_t>(spec.shape.elements()));
  dnnl::memory to(plain, engine(), result.data());
  reorder(dst.memory, to);
  return result;
}

float applied(const EpilogueStep& step, float value, float operand) {
  switch (step.algorithm) {
    case algorithm::binary_add: return value + operand;
    case algorithm::binary_sub: return value - operand;
    case algorithm::binary_mul: return value * operand;
    default: return step.alpha * value + step.beta;
  }
}

/// The chain with numbers that show when they, or their step, are missing.
Epilogue with_telling_numbers(Epilogue epilogue) {
  float number = 0.5F;
  for (EpilogueStep& step : epilogue.steps) {
    if (step.operand >= 0) continue;
    step.alpha = number;
    step.beta = number + 0.25F;
    number = -(number + 1);
  }
  epilogue.relu = false;
  return epilogue;
}

std::size_t channel_axis(const Operator& op, const Shape& output) {
  return dynamic_cast<const ops::Conv*>(&op) != nullptr ? 1 : output.rank() - 1;
}

/// The largest error over the largest value.
double error_of(const Operator& op, const Epilogue& epilogue, const KernelRequest& request) {
  std::vector<Values> numbers;
  for (const TensorSpec& spec : request.inputs) numbers.push_back(drawn(spec.shape, numbers.size() + 1));
  constexpr std::size_t kOperands = 2;
  KernelRequest alone = request;
  alone.inputs.resize(kOperands);
  alone.input_layouts.resize(kOperands);
  const Values plain = result_of(prepare_product(op, {}, alone, 1), alone, std::span(numbers).first(kOperands));
  const Values fused = result_of(prepare_product(op, epilogue, request, 1), request, numbers);
  const Shape& shape = request.outputs[0].shape;
  const std::size_t axis = channel_axis(op, shape);
  const auto channels = static_cast<std::size_t>(shape[axis]), inner = static_cast<std::size_t>(shape.strides()[axis]);
  const auto operand_at = [&](int operand, std::size_t i) {
    if (operand < 0) return 0.0F;
    const Values& values = numbers[static_cast<std::size_t>(operand)];
    return values.size() == plain.size() ? values[i] : values[i / inner % channels];
  };
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    float expected = plain[i] + operand_at(epilogue.bias, i);
    for (const EpilogueStep& step : epilogue.steps) expected = applied(step, expected, operand_at(step.operand, i));
    const double difference = std::abs(static_cast<double>(fused[i]) - static_cast<double>(expected));
    error = difference <= error ? error : difference;  // NaN stays
    largest = std::max(largest, std::abs(static_cast<double>(expected)));
  }
  return error / std::max(largest, 1e-30);
}

/// The request with two images or few rows. Unchanged if the shape of an operand does not show which dimension counts
/// images or rows.
KernelRequest smaller(const Operator& op, const KernelRequest& request) {
  constexpr std::int64_t kRows = 17, kImages = 2;
  const auto* matmul = dynamic_cast<const ops::Matmul*>(&op);
  const Shape whole = request.outputs[0].shape;
  if (matmul != nullptr && (whole.rank() != 2 || request.inputs[1].shape.rank() != 2)) return request;
  const std::int64_t rows = std::min(whole[0], matmul != nullptr ? kRows : kImages);
  const auto cut = [&](TensorSpec& spec, std::size_t axis) {
    std::vector<std::int64_t> dims(spec.shape.dims().begin(), spec.shape.dims().end());
    dims[axis] = rows;
    spec.shape = Shape(dims);
  };
  KernelRequest small = request;
  cut(small.inputs[0], matmul != nullptr && matmul->transpose_a() ? 1 : 0);
  cut(small.outputs[0], 0);
  for (std::size_t i = 2; i < small.inputs.size(); ++i) {
    if (small.inputs[i].shape == whole) cut(small.inputs[i], 0);
  }
  return small;
}

std::string words_of(const Epilogue& epilogue, const KernelRequest& request) {
  std::string words = epilogue.bias >= 0 ? "bias" : "";
  for (const EpilogueStep& step : epilogue.steps) {
    words += words.empty() ? "" : ", ";
    words += dnnl_alg_kind2str(dnnl::convert_to_c(step.algorithm));
    if (step.operand < 0) continue;
    const bool is_whole = request.inputs[static_cast<std::size_t>(step.operand)].shape == request.outputs[0].shape;
    words += is_whole ? " of the whole result" : " by channel";
  }
  return words;
}

/// Along which axes the result has several elements. With one element along an axis, a wrong index along it does not
/// show.
std::string several_of(const Shape& shape) {
  std::string axes;
  for (const std::int64_t dim : shape.dims()) axes += dim > 1 ? "n" : "1";
  return axes;
}

/// The properties that distinguish kernels, as text.
std::string key_of(const Operator& op, const Epilogue& epilogue, const KernelRequest& request,
                   const std::string& implementation) {
  const auto* conv = dynamic_cast<const ops::Conv*>(&op);
  const std::int64_t groups = conv != nullptr ? conv->options().groups : 1;
  const bool is_depthwise = groups > 1 && request.inputs[1].shape[1] == 1;
  return fmt::format("{} {}d {}{}, {}, {}: {}", op.name(), request.outputs[0].shape.rank(),
                     several_of(request.outputs[0].shape),
                     is_depthwise ? " depthwise"
                     : groups > 1 ? " groups"
                                  : "",
                     implementation, name_of(request.precision), words_of(epilogue, request));
}

/// The relu, a loop of our own, left away.
std::string implementation_of(const Operator& op, Epilogue epilogue, const KernelRequest& request) {
  epilogue.relu = false;
  return prepare_product(op, epilogue, request, 1).kernel->name();
}

}  // namespace

bool is_right(const Operator& op, const Epilogue& epilogue, const KernelRequest& request) {
  const double tolerance = request.precision == Precision::fp32 ? 1e-4 : 0.02;
  static std::mutex mutex;
  static std::map<std::string, bool, std::less<>> known;
  const std::string implementation = implementation_of(op, epilogue, request);
  if (epilogue.steps.empty() || !implementation.starts_with(kOfOneDnn)) return true;
  const std::string key = key_of(op, epilogue, request, implementation);
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const Epilogue telling = with_telling_numbers(epilogue);
  const KernelRequest small = smaller(op, request);
  const bool suffices = implementation_of(op, telling, small) == implementation;
  const double error = error_of(op, telling, suffices ? small : request);
  const bool right = error <= tolerance;
  if (!right) {
    log(LogLevel::info,
        fmt::format("{} is wrong (error {:.2g} of the largest value): a separate pass computes its steps", key, error));
  }
  known.emplace(key, right);
  return right;
}

}  // namespace concord::cpu
