// Members of launches of channel_sums: their numbers, memories and prologues.
#include "concord/opencl/ops/channel_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/opencl/formula/channels_last_rows.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/prologued.hpp"

namespace concord::opencl {
namespace {

// Of a launch. More make its text long, and eight of two operands have just the 1024 bytes of arguments that every
// device takes.
constexpr std::size_t kMostTogether = 8;
constexpr std::int64_t kWide = 32;  // channels of a group of channel_sums_join

RowsGrid grid_of(Context& context, const ChannelSum& sum) {
  const bool is_joined = context.capability().has_matrix_cores();
  return {context, sum.image, "ops/channel_sums.cl", 2, is_joined ? 8 : 2};
}

/// The numbers of a member, behind the offsets of its memories and in front of its last group.
constexpr std::array<std::string_view, 9> kMemberNumbers{"rows",    "blocks",    "part",         "places",     "parts",
                                                         "results", "first_sum", "first_column", "first_group"};

struct Member {
  ChannelSum sum;
  RowsGrid grid;
  std::size_t first_input, output;
  EpilogueText prologue;  // its macros begin with PROLOGUE<member>

  [[nodiscard]] std::int64_t blocks() const { return sum.image.channels() / ChannelsLast::kBlock; }
  [[nodiscard]] std::int64_t sums() const { return grid.parts() * sum.image.channels(); }
  [[nodiscard]] std::int64_t groups() const { return grid.columns() * grid.parts(); }
  [[nodiscard]] std::int64_t joining_groups() const { return divide_up(sum.results, kWide); }
};

std::vector<Member> members_of(Context& context, std::span<const KernelRequest> requests, std::size_t first_input,
                               std::size_t first_output) {
  std::vector<Member> members;
  std::size_t operands = 1;
  for (const KernelRequest& request : requests) {
    const ChannelSum sum = channel_sum_of(context, request).value();
    Member member{sum, grid_of(context, sum), first_input, first_output++, {}};
    if (sum.prologue) {
      member.prologue =
          block_prologue(request, *sum.prologue, sum.image.axis(), fmt::format("PROLOGUE{}", members.size()), operands)
              .value();
      shift_inputs(member.prologue.arguments, first_input);
      operands += static_cast<std::size_t>(sum.prologue->expression.inputs());
    }
    first_input += request.inputs.size();
    members.push_back(std::move(member));
  }
  return members;
}

std::string sum_text(std::size_t member) {
  std::string text =
      fmt::format("src = m{0}_src + m{0}_src_offset; dst = m{0}_dst + m{0}_dst_offset; member = {0}; ", member);
  for (const std::string_view number : kMemberNumbers) text += fmt::format("{0} = m{1}_{0}; ", number, member);
  return text;
}

/// SUM_ROWS: a branch for each member with a prologue, and one for all others.
std::string rows_text(std::span<const Member> members) {
  std::string text;
  const auto add = [&text](const std::string& condition, const std::string& rows) {
    text = text.empty() ? rows : fmt::format("if ({}) {{ {} }} else {{ {} }}", condition, rows, text);
  };
  if (std::ranges::any_of(members, [](const Member& member) { return !member.sum.prologue; })) {
    add("", "ADD_ROWS(NO_PROLOGUE)");
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (members[m].sum.prologue) add(fmt::format("member == {}", m), fmt::format("ADD_ROWS(PROLOGUE{}_BLOCK)", m));
  }
  return text;
}

/// The text in front of the kernels, and the arguments of all prologues.
EpilogueText text_of(std::span<const Member> members) {
  EpilogueText result;
  std::string memories, numbers, parameters, declared = "__global const uint4 *src; __global float *dst; uint member";
  for (std::size_t m = 0; m < members.size(); ++m) {
    memories += fmt::format("MEMORY(const uint4 *, m{0}_src) MEMORY(float *, m{0}_dst) ", m);
    numbers += fmt::format("NUMBER(ulong, m{0}_src_offset) NUMBER(ulong, m{0}_dst_offset) ", m);
    for (const std::string_view number : kMemberNumbers) numbers += fmt::format("NUMBER(uint, m{}_{}) ", m, number);
    numbers += fmt::format("NUMBER(uint, m{}_end) ", m);
    const EpilogueText& prologue = members[m].prologue;
    result.text += prologue.text;
    result.arguments.insert(result.arguments.end(), prologue.arguments.begin(), prologue.arguments.end());
    if (members[m].sum.prologue) parameters += fmt::format("PROLOGUE{}_PARAMETERS ", m);
  }
  for (const std::string_view number : kMemberNumbers) declared += fmt::format(", {}", number);
  result.text += fmt::format(
      "#define SUM_MEMORIES(MEMORY) {}\n#define SUM_NUMBERS(NUMBER) {}\n#define SUM_MEMBER {}; {}\n"
      "#define SUM_PARAMETERS {}\n#define SUM_ROWS {}\n",
      memories, numbers, declared, text_by_group(members.size(), sum_text), parameters, rows_text(members));
  return result;
}

/// The memories and numbers of all members, where each has so many work-groups.
std::vector<Argument> arguments_of(std::span<const Member> members, std::int64_t (Member::*groups)() const) {
  std::vector<Argument> list;
  std::int64_t sums = 0, columns = 0, end = 0;
  for (const Member& member : members) {
    const std::int64_t begin = std::exchange(end, end + (member.*groups)());
    list.insert(list.end(), {blocks_of(input(member.first_input)), output(member.output)});
    for (const std::int64_t value :
         {member.sum.image.rows(), member.blocks(), member.grid.part(), member.sum.image.places(), member.grid.parts(),
          member.sum.results, sums, columns, begin, end}) {
      list.emplace_back(as_uint(value));
    }
    sums += member.sums();
    columns += member.grid.columns();
  }
  list.emplace_back(workspace());
  return list;
}

std::int64_t total(std::span<const Member> members, const auto& of) {
  std::int64_t sum = 0;
  for (const Member& member : members) sum += of(member);
  return sum;
}

void add_stages(Context& context, std::span<const Member> members, std::vector<StagedKernel::AnyStage>& stages) {
  const EpilogueText text = text_of(members);
  const RowsGrid& grid = members[0].grid;
  const bool is_joined = context.capability().has_matrix_cores();
  std::vector<std::string> definitions = memory_definitions(context);
  if (is_joined) definitions.emplace_back("JOINED");
  const PendingProgram program = grid.program(text, std::move(definitions));
  const auto over = [&](std::string function, std::int64_t (Member::*groups)() const, std::vector<Argument> list) {
    const std::int64_t all = total(members, [groups](const Member& member) { return (member.*groups)(); });
    return Stage{program,
                 std::move(function),
                 {PackedArguments{std::move(list)}},
                 {size(all * grid.threads()), 1, 1},
                 {size(grid.threads()), 1, 1}};
  };
  std::vector<Argument> list = arguments_of(members, &Member::groups);
  if (is_joined) {
    const std::size_t columns = size(total(members, [](const Member& member) { return member.grid.columns(); }));
    const KeptArgument written = kept(columns * sizeof(std::uint32_t));
    stages.emplace_back(Stage{.program = program,
                              .function = "channel_sums_begin",
                              .arguments = {written},
                              .global = {columns, 1, 1},
                              .local = {1, 1, 1},
                              .once = true});
    list.emplace_back(written);
  }
  Stage sums = over("channel_sums", &Member::groups, std::move(list));
  sums.arguments.insert(sums.arguments.end(), text.arguments.begin(), text.arguments.end());
  stages.emplace_back(std::move(sums));
  if (is_joined) return;
  stages.emplace_back(
      over("channel_sums_join", &Member::joining_groups, arguments_of(members, &Member::joining_groups)));
}

}  // namespace

bool is_by_channel(const ops::Reduce& op, std::size_t rank, ChannelAxis axis) {
  const std::size_t channels = axis == ChannelAxis::last ? rank - 1 : 1;
  return op.kind() == ops::ReduceKind::sum && op.axes().size() == rank - 1 &&
         std::ranges::find(op.axes(), channels) == op.axes().end();
}

namespace {

/// Of large rows of floats.
std::optional<ChannelSum> sum_of_rows(const Context& context, const ops::Reduce& op, const Shape& src) {
  const std::int64_t channels = src.rank() > 1 ? src[-1] : 0;
  if (context.limits().is_cpu || channels % ChannelsLast::kBlock != 0 || src.elements() <= kMostOfSmallSum ||
      src.elements() > std::numeric_limits<std::int32_t>::max() || !is_by_channel(op, src.rank(), ChannelAxis::last)) {
    return {};
  }
  return ChannelSum{ChannelsLast(src, DType::f32, ChannelAxis::last), channels, {}};
}

}  // namespace

std::optional<ChannelSum> channel_sum_of(const Context& context, const KernelRequest& request) {
  constexpr std::size_t kLeastItems = 32;  // ops/channel_sums.cl: a group adds up 32 rows at least
  if (context.limits().max_work_group < kLeastItems) return {};
  const auto* const prologued = dynamic_cast<const ops::Prologued*>(request.op);
  const auto* const op = dynamic_cast<const ops::Reduce*>(prologued != nullptr ? prologued->base().get() : request.op);
  if (op == nullptr) return {};
  const Shape& src = request.inputs[0].shape;
  if (prologued != nullptr) {
    for (const std::size_t i : of_shape(src, request.inputs)) {
      const ChannelsLast* const image = as_channels_last(request.input_layouts[i]);
      if (image == nullptr) continue;
      const auto is_operand = [&](const TensorSpec& spec) { return is_block_operand(spec, src, image->axis()); };
      const bool has_operands = std::ranges::all_of(request.inputs.begin() + 1, request.inputs.end(), is_operand);
      if (!is_by_channel(*op, src.rank(), image->axis()) || !has_operands) return {};
      return ChannelSum{*image, image->channels(), Prologue{prologued->prologue(), prologued->base_inputs()}};
    }
    return {};
  }
  if (const PaddedTokens* const tokens = as_padded_tokens(request.input_layouts[0])) {
    if (!is_by_channel(*op, src.rank(), ChannelAxis::last)) return {};
    const ChannelsLast whole({tokens->tokens(), tokens->blocks_of_token() * ChannelsLast::kBlock}, tokens->number(),
                             ChannelAxis::last);
    return ChannelSum{whole, tokens->channels(), {}};
  }
  if (request.input_layouts[0] == nullptr) return sum_of_rows(context, *op, src);
  const ChannelsLast* const image = as_channels_last(request.input_layouts[0]);
  if (image == nullptr || !is_by_channel(*op, src.rank(), image->axis())) return {};
  return ChannelSum{*image, image->channels(), {}};
}

std::string channel_sum_kind(Context& context, const ChannelSum& sum) {
  return fmt::format("channels-last {} {}", name_of(sum.image.number()), grid_of(context, sum).lanes());
}

std::unique_ptr<Kernel> prepare_channel_sums(Context& context, std::span<const KernelRequest> requests) {
  std::vector<StagedKernel::AnyStage> stages;
  std::int64_t sums = 0;  // of the launch that has most: each uses the workspace anew
  std::size_t inputs = 0;
  for (std::size_t first = 0; first < requests.size(); first += kMostTogether) {
    const auto some = requests.subspan(first, std::min(kMostTogether, requests.size() - first));
    const std::vector<Member> members = members_of(context, some, inputs, first);
    add_stages(context, members, stages);
    sums = std::max(sums, total(members, [](const Member& member) { return member.sums(); }));
    for (const KernelRequest& request : some) inputs += request.inputs.size();
  }
  const std::string_view numbers = requests[0].input_layouts[0] == nullptr ? "rows" : "channels-last";
  std::string name = fmt::format("{} {}", requests.size() == 1 ? "reduce_sum" : "grouped sums", numbers);
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), size(sums) * sizeof(float));
}

}  // namespace concord::opencl
