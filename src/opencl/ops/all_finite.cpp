// AllFinite on OpenCL devices: as few launches as the limit on kernel arguments allows. Their work-groups count
// themselves in one word, and the last of them writes the result.
#include "concord/ops/all_finite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// MEMBER of one member.
std::string member_text(std::size_t member) {
  return fmt::format("src = src{0} + src{0}_offset; n = n{0}; begin = {1}; ", member,
                     member == 0 ? "0" : fmt::format("m{}_end", member - 1));
}

std::string text_for(std::size_t members) {
  std::string memories, numbers;
  for (std::size_t m = 0; m < members; ++m) {
    memories += fmt::format("MEMORY(const uint *, src{}) ", m);
    numbers += fmt::format("NUMBER(ulong, src{0}_offset) NUMBER(ulong, n{0}) NUMBER(uint, m{0}_end) ", m);
  }
  return fmt::format("#define MEMBER_MEMORIES(MEMORY) {}\n#define MEMBER_NUMBERS(NUMBER) {}\n#define MEMBER {}\n",
                     memories, numbers, text_by_group(members, member_text)) +
         kernel_source("ops/all_finite.cl");
}

/// What the group that completes the count computes besides, and its memories.
struct NumbersText {
  std::string text;
  std::vector<Argument> memories;
};

NumbersText numbers_text(const ops::AllFiniteWithNumbers& op, const KernelRequest& request) {
  NumbersText result;
  std::string memories, offsets, stores;
  std::vector<std::string> values{"finite"};
  const auto add = [&](const std::string& name, DType type, const BufferArgument& operand) {
    memories += fmt::format("MEMORY({} *, {}) ", cl_type(type), name);
    offsets += fmt::format("NUMBER(ulong, {}_offset) ", name);
    result.memories.emplace_back(operand);
    return name + "_offset";
  };
  for (std::size_t i = op.tensors(); i < request.inputs.size(); ++i) {
    const DType type = request.inputs[i].dtype;
    const std::string name = fmt::format("number{}", i), at = add(name, type, input(i, size_of(type)));
    values.push_back(cl_load(type, name, at));
  }
  const Expression& expression = op.formulas().expression();
  for (std::size_t k = 1; k < request.outputs.size(); ++k) {
    const DType type = request.outputs[k].dtype;
    const std::string name = fmt::format("result{}", k), at = add(name, type, output(k, size_of(type)));
    stores += cl_store(type, name, at, result_name(expression, k - 1)) + " ";
  }
  std::string statements = print_statements(expression, values, {}) + stores;
  std::ranges::replace(statements, '\n', ' ');
  result.text =
      fmt::format("{}\n#define MORE_MEMORIES(MEMORY) {}\n#define OFFSETS(NUMBER) {}\n#define WITH_NUMBERS {}\n",
                  kernel_source("shared/formulas.h"), memories, offsets, statements);
  return result;
}

/// `others`: the number of memories of `numbers`.
std::size_t most_members(const Context& context, std::size_t others) {
  constexpr std::size_t kMember = 32, kMemory = 16, kCommon = 48, kMost = 64;
  const auto bytes = context.device().get_info<std::size_t>(CL_DEVICE_MAX_PARAMETER_SIZE);
  const std::size_t taken = kCommon + kMemory * others;
  return std::clamp<std::size_t>(bytes > taken ? (bytes - taken) / kMember : 1, 1, kMost);
}

/// The work-groups for all tensors, of `chunk` elements each.
std::int64_t groups_for(std::span<const TensorSpec> tensors, std::int64_t chunk) {
  return std::transform_reduce(tensors.begin(), tensors.end(), std::int64_t{0}, std::plus<>{},
                               [&](const TensorSpec& spec) { return divide_up(spec.shape.elements(), chunk); });
}

/// Elements of a work-group: more where the word could not count the groups.
std::int64_t chunk_for(const Context& context, std::span<const TensorSpec> tensors, std::size_t local) {
  constexpr std::int64_t kMostGroups = 65535;
  CONCORD_CHECK(tensors.size() <= kMostGroups, NotSupported, "all_finite: {} tensors exceed the {} of the kernel",
                tensors.size(), kMostGroups);
  std::int64_t chunk = context.limits().is_cpu ? 65536 : static_cast<std::int64_t>(local) * 16;
  while (groups_for(tensors, chunk) > kMostGroups) chunk *= 2;
  return chunk;
}

/// `all`: the number of tensors, the first inputs.
PreparedKernel prepare_check(Context& context, std::string_view name, const KernelRequest& request, std::size_t all,
                             const NumbersText& behind) {
  const auto tensors = std::span(request.inputs).first(all);
  const Limits& limits = context.limits();
  const std::size_t local = limits.is_cpu ? 1 : std::min<std::size_t>(256, limits.max_work_group);
  const std::int64_t chunk = chunk_for(context, tensors, local);
  std::vector<std::string> definitions = memory_definitions(context);
  definitions.insert(definitions.end(), {fmt::format("LOCAL={}", local), fmt::format("CHUNK={}", chunk)});
  const std::size_t most = most_members(context, behind.memories.size());
  const std::size_t launches = (all + most - 1) / most, members = (all + launches - 1) / launches;
  // One group writes the result where no input has an element.
  const auto total = static_cast<std::uint32_t>(std::max<std::int64_t>(1, groups_for(tensors, chunk)));
  const KeptArgument progress = kept(sizeof(std::uint32_t));
  std::vector<StagedKernel::AnyStage> stages;
  std::uint32_t counted = 0;
  for (std::size_t begin = 0; begin < all; begin += members) {
    const std::size_t count = std::min(members, all - begin);
    std::vector<Argument> arguments;
    std::uint32_t groups = 0;
    for (std::size_t m = begin; m < begin + count; ++m) {
      const std::int64_t elements = request.inputs[m].shape.elements();
      groups += static_cast<std::uint32_t>(divide_up(elements, chunk));
      arguments.insert(arguments.end(), {input(m), static_cast<std::uint64_t>(elements), groups});
    }
    arguments.insert(arguments.end(), {progress, output(0)});
    arguments.insert(arguments.end(), behind.memories.begin(), behind.memories.end());
    arguments.emplace_back(total);
    counted += groups;
    if (begin + count == all && counted == 0) groups = 1;
    const PendingProgram program = context.program_from(behind.text + text_for(count), definitions);
    if (begin == 0) {
      stages.emplace_back(
          Stage{.program = program, .function = "all_finite_begin", .arguments = {progress}, .once = true});
    }
    stages.emplace_back(Stage{
        program, "all_finite_groups", {PackedArguments{std::move(arguments)}}, {groups * local, 1, 1}, {local, 1, 1}});
  }
  std::string full(name);
  if (launches > 1) full += fmt::format(", {} launches", launches);
  return prepared(request, std::make_unique<StagedKernel>(context, std::move(full), std::move(stages)));
}

PreparedKernel prepare_all_finite(Context& context, const ops::AllFinite& op, const KernelRequest& request) {
  return prepare_check(context, op.name(), request, request.inputs.size(), {});
}

PreparedKernel prepare_with_numbers(Context& context, const ops::AllFiniteWithNumbers& op,
                                    const KernelRequest& request) {
  return prepare_check(context, op.name(), request, op.tensors(), numbers_text(op, request));
}

}  // namespace

void add_all_finite(Kernels& kernels) {
  kernels.add<ops::AllFinite, prepare_all_finite>();
  kernels.add<ops::AllFiniteWithNumbers, prepare_with_numbers>();
}

}  // namespace concord::opencl
