// Depthwise convolution of images and its gradients on GPUs: items own strips of a column of the result, and each
// operand is read once. Used by depthwise.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kLargestKernel = 7, kCombineThreads = 64, kCombineWeights = 8;  // as in the kernels

/// A power of two.
std::int64_t threads_of(const Context& context, std::size_t wanted) {
  return static_cast<std::int64_t>(std::bit_floor(std::min(wanted, context.limits().max_work_group)));
}

/// `strip` rows of columns of the planes of a result are an item's. An item reads the rows of `window` for one row, and
/// `step` more for each further one.
struct Columns {
  std::int64_t planes, rows, width, window, step;
  [[nodiscard]] std::int64_t items(std::int64_t strip) const { return planes * divide_up(rows, strip) * width; }
};

/// The strip that reads the fewest rows, but leaves each unit items enough to hide the memory's latency.
std::int64_t strip_of(const Context& context, const Columns& columns) {
  constexpr std::int64_t kItemsPerUnit = 1024;
  const std::int64_t wanted = kItemsPerUnit * context.limits().compute_units;
  std::int64_t best = 1, least = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t strip : {1, 2, 4, 7, 8}) {
    if (strip > 1 && (strip > columns.rows || columns.items(strip) < wanted)) continue;
    const std::int64_t rows = divide_up(columns.rows, strip) * (columns.window + (strip - 1) * columns.step);
    if (rows > least) continue;
    best = strip;
    least = rows;
  }
  return best;
}

std::vector<std::string> definitions_of(const ops::ConvSizes& s, std::int64_t strip, std::int64_t threads) {
  const ops::Spatial &stride = s.options.stride, &padding = s.options.padding;
  return {fmt::format("KERNEL_H={}", s.kh),          fmt::format("KERNEL_W={}", s.kw),
          fmt::format("STRIDE_H={}", stride[1]),     fmt::format("STRIDE_W={}", stride[2]),
          fmt::format("PADDING_H={}", padding[1]),   fmt::format("PADDING_W={}", padding[2]),
          fmt::format("MULTIPLIER={}", s.group_o()), fmt::format("STRIP={}", strip),
          fmt::format("THREADS={}", threads)};
}

void add(std::vector<Argument>& arguments, std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) arguments.emplace_back(static_cast<std::int32_t>(value));
}

void add_divisors(std::vector<Argument>& arguments, std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) add_divisor(arguments, value);
}

std::unique_ptr<Kernel> kernel_of(Context& context, std::string_view label, std::int64_t strip,
                                  std::vector<StagedKernel::AnyStage> stages, std::size_t workspace_bytes = 0) {
  return std::make_unique<StagedKernel>(context, fmt::format("{} depthwise, strips of {}", label, strip),
                                        std::move(stages), workspace_bytes);
}

/// Of forward and backward-data: an item for each column of a strip.
Stage column_stage(PendingProgram program, std::string function, std::vector<Argument> arguments, std::int64_t items,
                   std::int64_t threads) {
  return {std::move(program),
          std::move(function),
          std::move(arguments),
          {size(divide_up(items, threads) * threads), 1, 1},
          {size(threads), 1, 1}};
}

Columns dst_columns(const ops::ConvSizes& s) { return {s.n * s.o, s.oh, s.ow, s.kh, s.options.stride[1]}; }

/// Blocks of as many pixels as the stride has.
Columns src_columns(const ops::ConvSizes& s) {
  const ops::Spatial& stride = s.options.stride;
  return {s.n * s.c, divide_up(s.h, stride[1]), divide_up(s.w, stride[2]), divide_up(s.kh, stride[1]), 1};
}

Stage combine_stage(Context& context, const ops::ConvSizes& s, std::vector<std::string> definitions,
                    std::int64_t parts) {
  const std::int64_t weights = s.o * s.taps();
  return {context.program("conv/depthwise_weights.cl", definitions),
          "conv_depthwise_weights_combine",
          {workspace(), output(0), static_cast<std::uint32_t>(weights), static_cast<std::uint32_t>(parts)},
          {size(divide_up(weights, kCombineWeights) * kCombineThreads), 1, 1},
          {size(kCombineThreads), 1, 1}};
}

}  // namespace

bool depthwise_strips_support(const Context& context, const ops::ConvSizes& s) {
  const ops::Spatial &stride = s.options.stride, &dilation = s.options.dilation;
  const bool is_image = s.d == 1 && s.kd == 1 && s.od == 1 && s.options.padding[0] == 0;
  const std::int64_t elements = std::max(s.n * s.o * s.dst_plane(), s.n * s.c * s.src_plane());
  return !context.limits().is_cpu && size(kCombineThreads) <= context.limits().max_work_group && is_image &&
         std::max(s.kh, s.kw) <= kLargestKernel && std::max(stride[1], stride[2]) <= 2 &&
         std::max(dilation[1], dilation[2]) == 1 && elements < std::int64_t{1} << 31 &&
         context.alternatives().should_use(alternative::kStrips, true);
}

std::unique_ptr<Kernel> depthwise_strips_forward(Context& context, const ops::ConvSizes& s, std::string_view label,
                                                 const EpilogueText& epilogue) {
  const Columns columns = dst_columns(s);
  const std::int64_t strip = strip_of(context, columns), threads = threads_of(context, 256);
  std::vector<Argument> arguments{input(0), input(1), output(0)};
  add(arguments, {columns.items(strip), s.h, s.w, s.oh});
  add_divisors(arguments, {s.ow, divide_up(s.oh, strip), s.o});
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  PendingProgram program = context.program_from(epilogue.text + kernel_source("conv/depthwise_strips.cl"),
                                                definitions_of(s, strip, threads));
  return kernel_of(context, label, strip,
                   {column_stage(std::move(program), "conv_depthwise_strips_forward", std::move(arguments),
                                 columns.items(strip), threads)});
}

std::unique_ptr<Kernel> depthwise_strips_backward_data(Context& context, const ops::ConvSizes& s,
                                                       std::string_view label, const EpilogueText& epilogue) {
  const Columns columns = src_columns(s);
  const std::int64_t strip = strip_of(context, columns), threads = threads_of(context, 256);
  std::vector<Argument> arguments{input(0), input(1), output(0)};
  add(arguments, {columns.items(strip), s.h, s.w, s.oh, s.ow});
  add_divisors(arguments, {columns.width, divide_up(columns.rows, strip), s.c});
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  PendingProgram program = context.program_from(epilogue.text + kernel_source("conv/depthwise_strips.cl"),
                                                definitions_of(s, strip, threads));
  return kernel_of(context, label, strip,
                   {column_stage(std::move(program), "conv_depthwise_strips_backward_data", std::move(arguments),
                                 columns.items(strip), threads)});
}

std::unique_ptr<Kernel> depthwise_strips_backward_weights(Context& context, const ops::ConvSizes& s,
                                                          std::string_view label) {
  constexpr std::int64_t kGroupsPerUnit = 16, kMostTurns = 64;
  const std::int64_t strip = strip_of(context, dst_columns(s)), threads = threads_of(context, 128);
  const std::int64_t strips = divide_up(s.oh, strip), all_strips = s.n * strips;
  // As many parts as give each unit several groups and no item a long sum, then as many strips as fill each turn of a
  // group's items.
  const std::int64_t wanted = divide_up(kGroupsPerUnit * context.limits().compute_units, s.o);
  const std::int64_t turns = std::min(kMostTurns, divide_up(divide_up(all_strips, wanted) * s.ow, threads));
  const std::int64_t part_strips = std::clamp<std::int64_t>(turns * threads / s.ow, 1, all_strips);
  const std::int64_t parts = divide_up(all_strips, part_strips);
  const bool combines = parts > 1;
  const std::vector<std::string> definitions = definitions_of(s, strip, threads);
  std::vector<Argument> arguments{input(0), input(1), combines ? workspace() : output(0)};
  add(arguments, {s.o, all_strips, part_strips, s.h, s.w, s.oh});
  add_divisors(arguments, {s.ow, strips});
  std::vector<StagedKernel::AnyStage> stages{Stage{context.program("conv/depthwise_weights.cl", definitions),
                                                   "conv_depthwise_weights_add",
                                                   std::move(arguments),
                                                   {size(parts * threads), size(s.o), 1},
                                                   {size(threads), 1, 1}}};
  if (combines) stages.emplace_back(combine_stage(context, s, definitions, parts));
  return kernel_of(context, label, strip, std::move(stages),
                   combines ? size(parts * s.o * s.taps()) * sizeof(float) : 0);
}

}  // namespace concord::opencl
