// ProductTrial: operands, expected results, runs.
#include "concord/opencl/gemm/tuning/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::uint32_t kTrialUntouched = 0x7fc17fc1U;  // a NaN that no kernel writes; UNTOUCHED of gemm/compare.cl

/// The problem with a and b as inputs 0 and 1; operands that earlier stages write stay unchanged.
Gemm with_own_operands(const Gemm& gemm) {
  Gemm own = gemm;
  own.c.buffer = output(0);
  if (!gemm.before.empty()) return own;
  own.a.buffer = input(0);
  own.b.buffer = input(1);
  own.before_bytes = 0;
  return own;
}

/// One past the farthest of `count` positions; the blocks, where block is not 0, are `outer` apart.
std::int64_t reach(std::int64_t count, std::int64_t stride, std::int64_t block, std::int64_t outer) {
  if (block == 0 || count <= block) return (count - 1) * stride + 1;
  return (count - 1) / block * outer + (block - 1) * stride + 1;
}

std::int64_t left_elements(const Gemm& g) {
  if (g.a.is_patch) return g.largest;
  if (g.a.is_channels_last) return g.m * g.k;
  if (g.a.filter_channels != 0) return g.m * g.patch.k.block * g.a.filter_channels;
  return (g.batch - 1) * g.a.batch + (g.m - 1) * g.a.row + reach(g.k, g.a.k, g.a.block, g.a.outer);
}

std::int64_t right_elements(const Gemm& g) {
  if (g.b.is_patch) return g.b.elements;
  return (g.batch - 1) * g.b.batch + (g.n - 1) * g.b.n +
         (g.b.block == 0 ? reach(g.k, g.b.k, 0, 0) : reach(g.k, 1, g.b.block, g.b.k));
}

std::int64_t result_elements(const Gemm& g) {
  const GemmResult& c = g.c;
  if (c.is_channels_last) return g.largest;
  const std::int64_t rows = (g.batch - 1) * c.batch + (g.m - 1) * c.row;
  if (!c.is_stepped()) return rows + reach(g.n, 1, c.block, c.outer);
  const std::int64_t inside = c.first + (c.block - 1) / c.page * c.step[0] +
                              (std::min(c.page, c.block) - 1) / c.line * c.step[1] +
                              (std::min(c.line, c.block) - 1) * c.step[2];
  return rows + (g.n - 1) / c.block * c.outer + inside + 1;
}

/// An input of a matrix multiplication, and the range of its random values.
struct InputNeed {
  std::int64_t elements = 0;
  DType number = DType::f32;
  float least = 0, greatest = 0;
  [[nodiscard]] std::size_t bytes() const { return std::max<std::size_t>(size(elements) * size_of(number), 4); }
};

/// The type of an operand with elements of this size; blocks of 16 bytes belong to a channels-last image.
DType number_of_size(std::size_t element_size, Precision precision) {
  switch (element_size) {
    case 1: return DType::u8;
    case 2: return DType::f16;
    case 16: return storage_number(precision);
    default: return DType::f32;
  }
}

/// The factors are around 0, so that the sums are around 1, where activation functions are neither flat nor steep.
/// Operands of the epilogue are between 0.5 and 1.5, so that it may divide by them.
std::vector<InputNeed> input_needs(const Gemm& gemm) {
  std::vector<InputNeed> needs;
  const auto need = [&](const Argument& argument, std::int64_t elements, float least, float greatest) -> InputNeed* {
    const auto* const buffer = std::get_if<BufferArgument>(&argument);
    if (buffer == nullptr || buffer->source != BufferArgument::Source::input) return nullptr;
    needs.resize(std::max(needs.size(), buffer->index + 1));
    needs[buffer->index] = {elements, number_of_size(buffer->element_size, gemm.precision), least, greatest};
    return &needs[buffer->index];
  };
  const float factor = 2 / std::sqrt(static_cast<float>(gemm.k));
  for (const Argument& argument : gemm.epilogue.arguments) need(argument, gemm.largest, 0.5F, 1.5F);
  for (const Stage& stage : gemm.before) {
    for_each_argument(stage.arguments, [&](const Argument& argument) { need(argument, gemm.largest, -1, 1); });
  }
  InputNeed* const left = need(gemm.a.buffer, left_elements(gemm), -1, 1);
  if (left != nullptr && gemm.a.has_16_bits()) left->number = storage_number(gemm.precision);
  InputNeed* const right = need(gemm.b.buffer, right_elements(gemm), -factor, factor);
  if (right != nullptr && gemm.b.is_channels_last) right->number = storage_number(gemm.precision);
  return needs;
}

/// Rounds towards zero; values below the normal range of fp16 become 0. The magnitude is at most 2.
std::uint16_t half_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U, exponent = bits >> 23 & 0xffU;
  constexpr std::uint32_t kBias = 112;
  if (exponent <= kBias) return static_cast<std::uint16_t>(sign);
  return static_cast<std::uint16_t>(sign | (exponent - kBias) << 10 | (bits >> 13 & 0x3ffU));
}

template <class Number>
void append(std::vector<std::byte>& bytes, Number number) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(Number)>>(number);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

void append_as(DType number, std::vector<std::byte>& bytes, float value) {
  switch (number) {
    case DType::u8: append(bytes, static_cast<std::uint8_t>(value >= 1)); break;
    case DType::f16: append(bytes, half_of(value)); break;
    case DType::bf16: append(bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)); break;
    default: append(bytes, value);
  }
}

/// Fills the buffer with repetitions of one block of values. The block has about a million values, not a round number.
void fill(Device& device, Buffer& buffer, const InputNeed& need, std::uint32_t seed) {
  constexpr std::size_t kBlock = (std::size_t{1} << 20) + 14;
  const std::size_t count = std::min(kBlock, buffer.bytes() / size_of(need.number));
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> numbers(need.least, need.greatest);
  std::vector<std::byte> bytes;
  bytes.reserve(count * size_of(need.number));
  for (std::size_t i = 0; i < count; ++i) append_as(need.number, bytes, numbers(random));
  for (std::size_t at = 0; at < buffer.bytes(); at += bytes.size()) {
    device.write(buffer, at, std::span(bytes).first(std::min(bytes.size(), buffer.bytes() - at)));
  }
}

/// The distance of the rows that the plain kernel computes in about a second. It is odd, so that every position in a
/// tile is checked.
std::int64_t row_step_of(const Context& context, const Gemm& gemm) {
  const double most = context.limits().is_cpu ? 3e8 : 2e11;
  const double products = static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k) *
                          static_cast<double>(gemm.batch);
  if (products <= most || gemm.has_channels_last()) return 1;
  return std::min(static_cast<std::int64_t>(products / most) | 1, gemm.m);
}

/// The largest deviation from the plain kernel, relative to the largest value: the rounding of sums of k values in two
/// orders, and the rounding of factors in lower precisions.
double tolerance_of(const Gemm& gemm) {
  const double sums = 0x1p-24 * (16 + 4 * std::sqrt(static_cast<double>(gemm.k)));
  switch (gemm.precision) {
    case Precision::fp32: return sums;
    case Precision::bf16: return sums + 0x1p-6;
    default: return sums + 0x1p-8;
  }
}

}  // namespace

ProductTrial::ProductTrial(Device& device, Context& context, const Gemm& gemm)
    : device_(device), context_(context), gemm_(with_own_operands(gemm)), row_step_(row_step_of(context, gemm_)) {
  std::uint32_t seed = 1;
  for (const InputNeed& need : input_needs(gemm_)) {
    inputs_.push_back(device_.allocate(need.bytes()));
    fill(device_, *inputs_.back(), need, seed++);
  }
  const std::size_t bytes = (size(result_elements(gemm_)) * size_of(number()) + 3) / 4 * 4;
  output_ = device_.allocate(bytes);
  expected_ = device_.allocate(bytes);
  const std::unique_ptr<Kernel> plain = reference();
  run_once(*plain);
  device_.copy(*output_, 0, *expected_, 0, bytes);
  const auto largest = compared("gemm_compare_largest", {input(1, size_of(number())), output(0), numbers()}, {0, 0})[0];
  tolerance_ = static_cast<float>(tolerance_of(gemm_)) * std::bit_cast<float>(largest);
}

DType ProductTrial::number() const { return gemm_.c.is_channels_last ? storage_number(gemm_.precision) : DType::f32; }

std::uint64_t ProductTrial::numbers() const { return output_->bytes() / size_of(number()); }

// The plain kernel supports only row-major operands.
std::unique_ptr<Kernel> ProductTrial::reference() const {
  if (gemm_.has_channels_last()) return planned_implementation(context_, gemm_).prepare(context_, gemm_, "reference");
  std::vector<std::string> definitions;
  if (row_step_ > 1) definitions.push_back(fmt::format("ROW_STEP={}", row_step_));
  Stage multiply{gemm_program(context_, gemm_, "gemm/reference.cl", true, std::move(definitions)),
                 "gemm_reference_multiply",
                 gemm_arguments(gemm_, 1, gemm_.k),
                 {size(gemm_.n), size((gemm_.m - 1) / row_step_ + 1), size(gemm_.batch)},
                 {0, 0, 0}};
  return gemm_staged(context_, gemm_, "reference", std::move(multiply), 1);
}

Operand ProductTrial::workspace_of(std::size_t bytes) {
  if (!workspace_ || workspace_->bytes() < bytes) {
    workspace_.reset();
    workspace_ = device_.allocate(std::max<std::size_t>(bytes, 4));
  }
  return {workspace_.get(), 0};
}

std::unique_ptr<Launch> ProductTrial::bind(const Kernel& kernel) {
  std::vector<Operand> inputs;
  for (const BufferPtr& buffer : inputs_) inputs.push_back({buffer.get(), 0});
  const Operand result{output_.get(), 0};
  return kernel.bind(inputs, {&result, 1}, workspace_of(kernel.workspace()));
}

void ProductTrial::run_once(const Kernel& kernel) {
  device_.fill(*output_, 0, output_->bytes(), kTrialUntouched);
  bind(kernel)->enqueue();
}

std::array<std::uint32_t, 2> ProductTrial::compared(const std::string& function, std::vector<Argument> arguments,
                                                    std::array<std::uint32_t, 2> found) {
  const std::size_t local = std::min<std::size_t>(64, context_.limits().max_work_group);
  const std::size_t groups = std::min<std::size_t>(numbers() / local + 1, context_.limits().compute_units * 32);
  std::vector<std::string> definitions;
  if (number() == DType::f16) definitions.emplace_back("NUMBERS_F16");
  if (number() == DType::bf16) definitions.emplace_back("NUMBERS_BF16");
  const StagedKernel kernel(context_, function,
                            {Stage{context_.program("gemm/compare.cl", definitions),
                                   function,
                                   std::move(arguments),
                                   {groups * local, 1, 1},
                                   {local, 1, 1}}});
  const BufferPtr place = device_.allocate(sizeof found);
  device_.write(*place, 0, std::as_bytes(std::span(found)));
  const std::array<Operand, 2> inputs{{{output_.get(), 0}, {expected_.get(), 0}}};
  const Operand result{place.get(), 0};
  kernel.bind(inputs, {&result, 1}, {})->enqueue();
  device_.read(*place, 0, std::as_writable_bytes(std::span(found)));
  return found;
}

std::string ProductTrial::text_of(const Buffer& buffer, std::size_t place) {
  if (number() != DType::f32) {
    std::uint16_t bits = 0;
    device_.read(buffer, place * sizeof bits, std::as_writable_bytes(std::span(&bits, 1)));
    return fmt::format("{:#06x} ({})", bits, name_of(number()));
  }
  float value = 0;
  device_.read(buffer, place * sizeof value, std::as_writable_bytes(std::span(&value, 1)));
  return fmt::format("{}", value);
}

std::string ProductTrial::fault() {
  const auto [wrong, first] = compared("gemm_compare_count",
                                       {input(0, size_of(number())), input(1, size_of(number())), output(0), numbers(),
                                        tolerance_, std::uint32_t{is_whole()}},
                                       {0, UINT32_MAX});
  if (wrong == 0) return {};
  return fmt::format("{} of {} numbers are wrong, the first at {}: {} instead of {}", wrong, numbers(), first,
                     text_of(*output_, first), text_of(*expected_, first));
}

double ProductTrial::seconds(const Kernel& kernel, double worth) {
  // The reader of a partial result adds up its parts.
  std::vector<StagedKernel::AnyStage> stages = dynamic_cast<const StagedKernel&>(kernel).stages();
  const auto* const last = std::get_if<Stage>(&stages.back());
  if (gemm_.partial && last != nullptr && last->function == "gemm_combine_parts") stages.pop_back();
  const StagedKernel counted(context_, kernel.name(), std::move(stages), kernel.workspace());
  const std::unique_ptr<Launch> launch = bind(counted);

  constexpr double kEnough = 0.05;
  constexpr int kLeastRuns = 3, kMostRuns = 20;
  double best = device_.timed(*launch), total = best;
  for (int run = 1; run < kMostRuns && best <= worth && (run < kLeastRuns || total < kEnough); ++run) {
    const double once = device_.timed(*launch);
    best = std::min(best, once);
    total += once;
  }
  return best;
}

ProductTrial::Outcome ProductTrial::run(const Kernel& kernel, double worth) {
  run_once(kernel);
  if (std::string wrong = fault(); !wrong.empty()) return {std::move(wrong), 0};
  return {{}, seconds(kernel, worth)};
}

}  // namespace concord::opencl
