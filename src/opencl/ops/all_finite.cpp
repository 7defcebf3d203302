// AllFinite on OpenCL devices: as few launches as the limit on kernel arguments allows. Their work-groups count
// themselves in one word, and the last of them writes the result.
#include "concord/ops/all_finite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/kernels.hpp"
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
    memories += fmt::format("{}__global const uint* src{}", m == 0 ? "" : ", ", m);
    numbers += fmt::format("NUMBER(ulong, src{0}_offset) NUMBER(ulong, n{0}) NUMBER(uint, m{0}_end) ", m);
  }
  return fmt::format("#define MEMBERS {}\n#define MEMBER_NUMBERS(NUMBER) {}\n#define MEMBER {}\n", memories, numbers,
                     text_by_group(members, member_text)) +
         kernel_source("ops/all_finite.cl");
}

std::size_t most_members(const Context& context) {
  constexpr std::size_t kMember = 32, kOthers = 48, kMost = 64;
  const auto bytes = context.device().get_info<std::size_t>(CL_DEVICE_MAX_PARAMETER_SIZE);
  return std::clamp<std::size_t>(bytes > kOthers ? (bytes - kOthers) / kMember : 1, 1, kMost);
}

/// The work-groups for all inputs, of `chunk` elements each.
std::int64_t groups_for(const KernelRequest& request, std::int64_t chunk) {
  return std::transform_reduce(request.inputs.begin(), request.inputs.end(), std::int64_t{0}, std::plus<>{},
                               [&](const TensorSpec& spec) { return divide_up(spec.shape.elements(), chunk); });
}

/// Elements of a work-group: more where the word could not count the groups.
std::int64_t chunk_for(const Context& context, const KernelRequest& request, std::size_t local) {
  constexpr std::int64_t kMostGroups = 65535;
  CONCORD_CHECK(request.inputs.size() <= kMostGroups, NotSupported,
                "all_finite: {} tensors exceed the {} of the kernel", request.inputs.size(), kMostGroups);
  std::int64_t chunk = context.limits().is_cpu ? 65536 : static_cast<std::int64_t>(local) * 16;
  while (groups_for(request, chunk) > kMostGroups) chunk *= 2;
  return chunk;
}

PreparedKernel prepare_all_finite(Context& context, const ops::AllFinite&, const KernelRequest& request) {
  const Limits& limits = context.limits();
  const std::size_t local = limits.is_cpu ? 1 : std::min<std::size_t>(256, limits.max_work_group);
  const std::int64_t chunk = chunk_for(context, request, local);
  const std::vector<std::string> sizes{fmt::format("LOCAL={}", local), fmt::format("CHUNK={}", chunk)};
  const std::size_t all = request.inputs.size(), most = most_members(context);
  const std::size_t launches = (all + most - 1) / most, members = (all + launches - 1) / launches;
  // One group writes the result where no input has an element.
  const auto total = static_cast<std::uint32_t>(std::max<std::int64_t>(1, groups_for(request, chunk)));
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
    arguments.insert(arguments.end(), {progress, output(0), total});
    counted += groups;
    if (begin + count == all && counted == 0) groups = 1;
    const PendingProgram program = context.program_from(text_for(count), sizes);
    if (begin == 0) {
      stages.emplace_back(
          Stage{.program = program, .function = "all_finite_begin", .arguments = {progress}, .once = true});
    }
    stages.emplace_back(Stage{
        program, "all_finite_groups", {PackedArguments{std::move(arguments)}}, {groups * local, 1, 1}, {local, 1, 1}});
  }
  const std::string name = launches == 1 ? "all_finite" : fmt::format("all_finite, {} launches", launches);
  return prepared(request, std::make_unique<StagedKernel>(context, name, std::move(stages)));
}

}  // namespace

void add_all_finite(Kernels& kernels) { kernels.add<ops::AllFinite, prepare_all_finite>(); }

}  // namespace concord::opencl
