// The layout of weights as filters, and the launches that pack them.
#include "concord/opencl/conv/filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kFilterBlock = ChannelsLast::kBlock, kFilterBlockBytes = 16;

// THREADS, LINES, BLOCKS and MOST_TAPS of conv/filters.cl.
constexpr std::int64_t kFilterThreads = 128, kFilterLines = 8, kFilterBlocks = 8, kMostStagedTaps = 9;

std::int64_t blocks_of_tap(const Filters::Walk& walk) { return walk.padded / kFilterBlock; }

/// A tap of a phase, as conv/filters.cl reads it; the last number is unused.
using FilterSlot = std::array<std::uint32_t, 4>;

void add_slots(std::vector<FilterSlot>& slots, const Filters& filters) {
  const auto count = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  const auto& phases = filters.walk().phases;
  const std::size_t blocks = size(blocks_of_tap(filters.walk()));
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const std::size_t begin = filters.begin_of(p) / size(kFilterBlockBytes);
    for (std::size_t tap = 0; tap < phases[p].size(); ++tap) {
      slots.push_back({phases[p][tap], count(begin + tap * blocks), count(phases[p].size() * blocks), 0});
    }
  }
}

/// The taps of the weights if they lie side by side, are all in some phase and fit into local memory, and no group has
/// padding only; else 0.
std::int64_t staged_taps(const Filters::Walk& walk) {
  const std::int64_t taps = std::min(walk.line_stride, walk.run_stride);
  std::int64_t slots = 0;
  for (const std::vector<std::uint32_t>& phase : walk.phases) slots += std::ssize(phase);
  const bool has_numbers = walk.padded < walk.numbers + kFilterBlocks * kFilterBlock;
  return walk.run == 1 && slots == taps && taps <= kMostStagedTaps && has_numbers ? taps : 0;
}

std::int64_t groups_of(const Filters::Walk& walk) {
  return divide_up(walk.lines, kFilterLines) * divide_up(blocks_of_tap(walk), kFilterBlocks);
}

/// The numbers of a member, behind the offsets of its memories.
constexpr std::array<std::string_view, 11> kMemberNumbers{
    "lines",      "line_stride", "numbers_of_tap", "run",   "run_stride", "blocks",
    "first_slot", "end_slot",    "taps",           "begin", "end"};

/// FILTER_MEMBER of one member.
std::string member_text(std::size_t member) {
  std::string text = fmt::format("from = m{0}_from + m{0}_from_offset; to = m{0}_to + m{0}_to_offset; ", member);
  for (const std::string_view number : kMemberNumbers) text += fmt::format("{0} = m{1}_{0}; ", number, member);
  return text;
}

std::string text_of(std::size_t members) {
  std::string memories, numbers, declared = "__global const float *from; __global uint4 *to; uint ";
  for (std::size_t m = 0; m < members; ++m) {
    memories += fmt::format("MEMORY(const float *, m{0}_from) MEMORY(uint4 *, m{0}_to) ", m);
    numbers += fmt::format("NUMBER(ulong, m{0}_from_offset) NUMBER(ulong, m{0}_to_offset) ", m);
    for (const std::string_view number : kMemberNumbers) numbers += fmt::format("NUMBER(uint, m{}_{}) ", m, number);
  }
  for (const std::string_view number : kMemberNumbers) {
    declared += fmt::format("{}{}", number, number == kMemberNumbers.back() ? "; " : ", ");
  }
  return fmt::format(
             "#define FILTER_MEMORIES(MEMORY) {}\n#define FILTER_NUMBERS(NUMBER) {}\n#define FILTER_MEMBER {}{}\n",
             memories, numbers, declared, text_by_group(members, member_text)) +
         kernel_source("conv/filters.cl");
}

/// The launch that packs the reorders [begin, begin + count) of a list, whose operands have these numbers.
Stage pack_stage(Context& context, std::span<const Device::Reorder> reorders, std::size_t begin, std::size_t count) {
  std::vector<FilterSlot> slots;
  std::vector<Argument> list;
  std::int64_t groups = 0;
  DType number = DType::bf16;
  for (std::size_t i = begin; i < begin + count; ++i) {
    const auto& filters = dynamic_cast<const Filters&>(*reorders[i].to);
    const Filters::Walk& walk = filters.walk();
    number = filters.number();
    const std::size_t first_slot = slots.size();
    add_slots(slots, filters);
    const std::int64_t first_group = std::exchange(groups, groups + groups_of(walk));
    list.insert(list.end(), {input(i), output(i, size(kFilterBlockBytes))});
    for (const std::int64_t value : {walk.lines, walk.line_stride, walk.numbers, walk.run, walk.run_stride,
                                     blocks_of_tap(walk), static_cast<std::int64_t>(first_slot),
                                     static_cast<std::int64_t>(slots.size()), staged_taps(walk), first_group, groups}) {
      list.emplace_back(as_uint(value));
    }
  }
  list.emplace_back(constant_table<FilterSlot>(context, slots));
  std::vector<std::string> definitions = memory_definitions(context);
  for (std::string& one : number_definitions(context, number)) definitions.push_back(std::move(one));
  return {context.program_from(text_of(count), definitions),
          "filters_pack",
          {PackedArguments{std::move(list)}},
          {size(groups * kFilterThreads), 1, 1},
          {size(kFilterThreads), 1, 1}};
}

/// Members whose arguments fit into one launch.
std::size_t most_members(const Context& context) {
  constexpr std::size_t kPointers = 16, kOffsets = 16, kTable = 8, kMost = 64;
  constexpr std::size_t kMember = kPointers + kOffsets + (kMemberNumbers.size() * 4 + 7) / 8 * 8;
  const auto bytes = context.device().get_info<std::size_t>(CL_DEVICE_MAX_PARAMETER_SIZE);
  return std::clamp<std::size_t>((bytes - kTable) / kMember, 1, kMost);
}

std::vector<std::uint32_t> all_taps(std::int64_t taps, std::int64_t stride) {
  std::vector<std::uint32_t> begins;
  for (std::int64_t tap = 0; tap < taps; ++tap) begins.push_back(static_cast<std::uint32_t>(tap * stride));
  return begins;
}

}  // namespace

bool Filters::equals(const LayoutDescription& other) const {
  const auto* same = dynamic_cast<const Filters*>(&other);
  return same != nullptr && same->number_ == number_ && same->walk_ == walk_;
}

std::string Filters::str() const { return fmt::format("filters {}", name_of(number_)); }

std::size_t Filters::begin_of(std::size_t phase) const {
  constexpr std::int64_t kAlignment = 256;
  std::int64_t bytes = 0;
  for (std::size_t p = 0; p < phase; ++p) {
    bytes += round_up(walk_.lines * std::ssize(walk_.phases[p]) * blocks_of_tap(walk_) * kFilterBlockBytes, kAlignment);
  }
  return size(bytes);
}

std::shared_ptr<const Filters> forward_filters(const ops::ConvSizes& s, DType number, std::int64_t padded) {
  const std::int64_t taps = s.taps();
  return std::make_shared<const Filters>(number,
                                         Filters::Walk{s.o, s.c * taps, s.c, 1, taps, padded, {all_taps(taps, 1)}});
}

std::shared_ptr<const Filters> backward_filters(const ops::ConvSizes& s, DType number, std::int64_t padded,
                                                std::vector<std::vector<std::uint32_t>> phases) {
  const std::int64_t taps = s.taps();
  return std::make_shared<const Filters>(number,
                                         Filters::Walk{s.c, taps, s.o, 1, s.c * taps, padded, std::move(phases)});
}

std::shared_ptr<const Filters> row_unrolled_filters(const ops::ConvSizes& s, DType number, std::int64_t padded) {
  const std::int64_t taps = s.taps();
  return std::make_shared<const Filters>(
      number, Filters::Walk{s.o, s.c * taps, s.c * s.kw, s.kw, taps, padded, {all_taps(s.kh, s.kw)}});
}

std::unique_ptr<Kernel> prepare_filters(Context& context, std::span<const Device::Reorder> reorders) {
  const auto filters_of = [](const Device::Reorder& reorder) { return dynamic_cast<const Filters*>(reorder.to.get()); };
  const bool are_filters = std::ranges::all_of(reorders, [&](const Device::Reorder& reorder) {
    return reorder.from == nullptr && filters_of(reorder) != nullptr &&
           filters_of(reorder)->number() == filters_of(reorders[0])->number();
  });
  if (!are_filters) return nullptr;
  const std::size_t most = most_members(context), launches = (reorders.size() + most - 1) / most;
  std::vector<StagedKernel::AnyStage> stages;
  for (std::size_t begin = 0; begin < reorders.size();) {
    // Launches of about the same number of members share a program.
    const std::size_t count = std::min((reorders.size() + launches - 1) / launches, reorders.size() - begin);
    stages.emplace_back(pack_stage(context, reorders, begin, count));
    begin += count;
  }
  return std::make_unique<StagedKernel>(context, "to filters", std::move(stages));
}

}  // namespace concord::opencl
