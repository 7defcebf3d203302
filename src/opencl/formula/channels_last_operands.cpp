// Text and arguments of the operands of kernels that process blocks of channels.
#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/channel_columns.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {

namespace {

/// The strides of a row-major operand along the images or tokens, and along the channels, of `whole`. Nothing where it
/// varies along the places of an image, or has no single stride along one of these.
std::optional<std::array<std::int64_t, 2>> small_strides(const Shape& operand, const Shape& whole, ChannelAxis axis) {
  const std::size_t rank = whole.rank();
  if (axis == ChannelAxis::last) {
    const auto strides = grouped_strides(operand, whole, std::array<std::size_t, 2>{rank - 1, rank});
    return strides ? std::optional(std::array{(*strides)[0], (*strides)[1]}) : std::nullopt;
  }
  const auto strides = grouped_strides(operand, whole, std::array<std::size_t, 3>{1, 2, rank});
  if (!strides || (*strides)[2] != 0) return std::nullopt;
  return std::array{(*strides)[0], (*strides)[1]};
}

/// The tokens after which a row-major operand of the last axes of `whole`, such as the embedding of positions, repeats;
/// 0 for other operands.
std::int64_t period_of(const TensorSpec& operand, const Shape& whole, ChannelAxis axis) {
  const Shape& own = operand.shape;
  const bool has_channels = own.rank() > 0 && own.rank() <= whole.rank() && own[-1] == whole[-1];
  if (axis != ChannelAxis::last || operand.dtype != DType::f32 || !has_channels) return 0;
  if (whole[-1] % ChannelsLast::kBlock != 0) return 0;
  std::int64_t tokens = 1;
  bool repeats = false;
  for (std::int64_t back = 2; std::cmp_less_equal(back, whole.rank()); ++back) {
    const std::int64_t size = std::cmp_less_equal(back, own.rank()) ? own[-back] : 1;
    repeats = repeats || size != whole[-back];
    if (repeats && size != 1) return 0;
    tokens *= size;
  }
  return repeats && tokens > 1 ? tokens : 0;
}

/// The block `at` of the result in an operand of its shape.
std::string block_of_operand(const Layout& layout, ChannelAxis axis) {
  const ChannelColumns* const columns = as_channel_columns(layout);
  if (columns == nullptr || columns->axis() != axis) return "at";
  const std::string own = fmt::format("({}u / BLOCK_CHANNELS)", columns->columns());
  return fmt::format("((uint)at / {0} * ({1}u / BLOCK_CHANNELS) + (uint)at % {0} + {2}u / BLOCK_CHANNELS)", own,
                     columns->pitch(), columns->begin());
}

}  // namespace

std::string BlockOperands::parameter_list() const {
  std::string list;
  for (const auto& [type, name] : parameters) list += ", " + type + name;
  return list;
}

std::string BlockOperands::argument_list() const {
  std::string list;
  for (const auto& [type, name] : parameters) list += ", " + name;
  return list;
}

bool is_block_operand(const TensorSpec& spec, const Shape& whole, ChannelAxis axis) {
  if (spec.shape == whole) return spec.dtype == DType::f32;
  if (period_of(spec, whole, axis) > 0) return true;
  return (spec.dtype == DType::f32 || spec.dtype == DType::i32) && small_strides(spec.shape, whole, axis).has_value();
}

std::optional<BlockOperands> block_operands(const KernelRequest& request, const Shape& whole, std::size_t first,
                                            std::size_t end, std::size_t first_name, ChannelAxis axis) {
  const bool is_padded = axis == ChannelAxis::last && whole[-1] % ChannelsLast::kBlock != 0;
  // Nothing lies behind the last channel.
  const std::string channel =
      is_padded ? fmt::format("min(channel + e, {}u)", whole[-1] - 1) : std::string("(channel + e)");
  BlockOperands result;
  const auto add = [&result](std::string type, std::string name) {
    result.parameters.push_back({std::move(type), std::move(name)});
  };
  for (std::size_t i = first; i < end; ++i) {
    const TensorSpec& spec = request.inputs[i];
    if (!is_block_operand(spec, whole, axis)) return std::nullopt;
    const std::size_t number = first_name + i - first;
    const std::string e = fmt::format("e{}", number), x = fmt::format("x{}", number);
    if (spec.shape == whole) {
      add("__global const block_t *", e);
      add("ulong ", e + "_offset");
      result.whole.push_back({number, block_of_operand(request.input_layouts[i], axis)});
      result.arguments.emplace_back(blocks_of(input(i)));
      continue;
    }
    const auto strides = small_strides(spec.shape, whole, axis);
    if (!strides) {
      add("__global const channels_t *restrict ", e);
      add("ulong ", e + "_offset");
      result.arguments.emplace_back(blocks_of(input(i)));
      result.small_reads += fmt::format(
          "  float {0}[BLOCK_CHANNELS];\n  read_channels({0}, {1} + {1}_offset * CHANNELS_IN_16_BYTES, "
          "(uint)(image % {2}u) * {3}u + channel);\n",
          x, e, period_of(spec, whole, axis), whole[-1]);
      continue;
    }
    // No result lies over it, as one may over operands of its own shape. Neighbouring channels are read together.
    const bool is_in_fours = (*strides)[1] == 1 && (*strides)[0] % 4 == 0 && !is_padded && spec.dtype == DType::f32;
    const bool is_by_image = !is_in_fours || (*strides)[0] != 0;
    add(fmt::format("__global const {} *restrict ", is_in_fours ? "channels_t" : cl_type(spec.dtype)), e);
    add("ulong ", e + "_offset");
    result.arguments.emplace_back(is_in_fours ? blocks_of(input(i)) : input(i));
    if (is_by_image) {
      add("ulong ", e + "_image");
      result.arguments.emplace_back(static_cast<std::uint64_t>((*strides)[0]));
    }
    if (is_in_fours) {
      result.small_reads += fmt::format(
          "  float {0}[BLOCK_CHANNELS];\n  read_channels({0}, {1} + {1}_offset * CHANNELS_IN_16_BYTES, {2}channel);\n",
          x, e, is_by_image ? fmt::format("(uint)(image * {}_image) + ", e) : "");
      continue;
    }
    result.small_reads += fmt::format(
        "  float {0}[BLOCK_CHANNELS];\n  EACH_CHANNEL(e) {0}[e] = (float){1}[{1}_offset + image * {1}_image + {2}];\n",
        x, e, (*strides)[1] == 0 ? "0" : fmt::format("{} * {}ul", channel, (*strides)[1]));
  }
  return result;
}

namespace {

/// The name of an operand's parameter in a kernel of so many requests.
std::string name_of_member(std::size_t members, std::size_t member, const std::string& name) {
  return members == 1 ? name : fmt::format("m{}_{}", member, name);
}

/// The expression as {kind}_PARAMETERS and {kind}_BLOCK, and as {kind}_READ, which reads 16 bytes of each of
/// {kind}_WHOLES operands of its shape, and {kind}_APPLY, which does the rest with a block of each. Input 0 is the
/// value, the others are each request's inputs from `first` on, called x<first_name>, ….
std::optional<EpilogueText> block_function(std::span<const KernelRequest> members, const Shape& whole,
                                           const Expression& expression, std::size_t first, std::size_t first_name,
                                           ChannelAxis axis, std::string_view kind) {
  const std::size_t extra = static_cast<std::size_t>(expression.inputs()) - 1;
  EpilogueText result;
  std::optional<BlockOperands> operands;  // of the last member: those of the others have the same form
  std::string parameters;
  for (std::size_t m = 0; m < members.size(); ++m) {
    operands = block_operands(members[m], whole, first, first + extra, first_name, axis);
    if (!operands) return std::nullopt;
    for (const auto& [type, name] : operands->parameters) {
      parameters += fmt::format(", {}{}", type, name_of_member(members.size(), m, name));
    }
    shift_inputs(operands->arguments, m * members[0].inputs.size());
    result.arguments.insert(result.arguments.end(), operands->arguments.begin(), operands->arguments.end());
  }
  std::string arguments;
  for (const auto& [type, name] : operands->parameters) {
    std::string chosen = name_of_member(members.size(), members.size() - 1, name);
    for (std::size_t m = members.size() - 1; m-- > 0;) {
      chosen = fmt::format("(member == {} ? {} : {})", m, name_of_member(members.size(), m, name), chosen);
    }
    arguments += ", " + chosen;
  }
  std::vector<std::string> values{"x0[e]"};
  for (std::size_t j = 0; j < extra; ++j) values.push_back(fmt::format("x{}[e]", first_name + j));
  std::string reads, long_reads, wholes;
  for (std::size_t w = 0; w < operands->whole.size(); ++w) {
    const auto& [number, at] = operands->whole[w];
    const std::string place = fmt::format("e{0} + (e{0}_offset * BLOCKS_IN_16_BYTES + {1})", number, at);
    reads += fmt::format("  wholes[{}] = *({});\n", w, place);
    long_reads += fmt::format("  wholes[{}] = *(__global const uint4 *)({});\n", w, place);
    wholes += fmt::format("  float x{1}[BLOCK_CHANNELS];\n  read_block(x{1}, wholes[{0}]);\n", w, number);
  }
  result.text = fmt::format(
      "{0}\n{1}\n#define {2}_PARAMETERS {3}\n#define {2}_WHOLES {4}\n"
      "static inline void read_{2}(block_t *wholes, ulong at{5}) {{\n{6}}}\n"
      "static inline void read_16_bytes_{2}(uint4 *wholes, ulong at{5}) {{\n{7}}}\n"
      "static inline void apply_{2}(float *x0, const block_t *wholes, ulong image, uint channel{5}) {{\n{8}"
      "  EACH_CHANNEL(e) {{\n{9}  x0[e] = {10};\n  }}\n}}\n"
      "#define {2}_READ(wholes, at) read_16_bytes_{2}(wholes, at{11})\n"
      "#define {2}_APPLY(values, wholes, image, channel) apply_{2}(values, wholes, image, channel{11})\n"
      "#define {2}_BLOCK(values, at, image, channel) "
      "{{ block_t wholes[{2}_WHOLES + 1]; read_{2}(wholes, at{11}); {2}_APPLY(values, wholes, image, channel); }}\n",
      kernel_source("shared/formulas.h"), kernel_source("shared/channels_last.h"), kind, parameters,
      operands->whole.size(), operands->parameter_list(), reads, long_reads, wholes + operands->small_reads,
      print_statements(expression, values, {}), result_name(expression, 0), arguments);
  return result;
}

}  // namespace

std::optional<EpilogueText> block_epilogue(const KernelRequest& request, const Epilogue& epilogue, ChannelAxis axis) {
  return block_epilogue({&request, 1}, epilogue, axis);
}

std::optional<EpilogueText> block_epilogue(std::span<const KernelRequest> members, const Epilogue& epilogue,
                                           ChannelAxis axis) {
  return block_function(members, members[0].outputs[0].shape, epilogue.expression, epilogue.first_extra, 1, axis,
                        "EPILOGUE");
}

std::optional<EpilogueText> block_appended(const KernelRequest& request, const Epilogue& formula, ChannelAxis axis) {
  // Its operands stand behind those of an epilogue in the same kernel, and have greater numbers.
  return block_function({&request, 1}, request.outputs[0].shape, formula.expression, formula.first_extra,
                        formula.first_extra, axis, "APPENDED");
}

std::optional<EpilogueText> block_prologue(const KernelRequest& request, const Prologue& prologue, ChannelAxis axis,
                                           std::string_view name, std::size_t first_name) {
  return block_function({&request, 1}, request.inputs[0].shape, prologue.expression, prologue.first_extra, first_name,
                        axis, name);
}

std::optional<EpilogueText> block_prologue(const KernelRequest& request, const Prologue& prologue, ChannelAxis axis) {
  // Its operands stand behind those of an epilogue in the same kernel, and have greater numbers.
  return block_prologue(request, prologue, axis, "PROLOGUE", prologue.first_extra);
}

PreparedKernel prepared_channels_last(const KernelRequest& request, std::unique_ptr<Kernel> kernel,
                                      std::span<const std::size_t> inputs, std::span<const std::size_t> outputs,
                                      ChannelAxis axis) {
  const auto layout_of = [&](const TensorSpec& spec) {
    Layout layout =
        channels_last(spec, spec.dtype == DType::f32 ? storage_number(request.precision) : spec.dtype, axis);
    CONCORD_CHECK(layout != nullptr, NotSupported, "{} cannot be channels-last", spec.str());
    return layout;
  };
  PreparedKernel result = prepared(request, std::move(kernel));
  for (const std::size_t i : inputs) {
    result.input_layouts[i] = as_operand(request.input_layouts[i], layout_of(request.inputs[i]));
  }
  for (const std::size_t k : outputs) result.output_layouts[k] = layout_of(request.outputs[k]);
  return result;
}

}  // namespace concord::opencl
