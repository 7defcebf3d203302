// How batch normalisation in one launch divides an image among groups that are on the device at once.
#include "concord/opencl/ops/batch_norm_resident.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/batch_norm_cut.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// Groups of `threads` items: in `columns` of `lanes` blocks of channels, and in each of them `parts` of `part` rows.
/// An item has `unroll` rows in a turn, and the first `kept` turns stay in local memory.
struct Division {
  std::int64_t threads, lanes, unroll, columns, part, parts, kept;
};

/// Blocks of channels that a group has, at most 16: as few as possible stay idle in the last group. Rows of 128 bytes
/// and more are whole lines of the cache.
std::int64_t lanes_of(std::int64_t blocks) {
  constexpr std::int64_t kLeast = 8, kMost = 16;
  if (blocks <= kMost) return blocks;
  std::int64_t best = kMost;
  for (const std::int64_t lanes : {8, 9, 10, 11, 12, 13, 14, 15}) {
    const auto idle = [&](std::int64_t of) { return divide_up(blocks, of) * of - blocks; };
    if (idle(lanes) < idle(best) || (lanes == kLeast && idle(lanes) == idle(best))) best = lanes;
  }
  return best;
}

/// Local memory of the kernel besides what it keeps.
std::int64_t bytes_of_sums(std::int64_t threads, std::int64_t lanes, bool has_warps) {
  const std::int64_t rows_of_warp = has_warps && threads % 32 == 0 && 32 % lanes == 0 ? 32 / lanes : 1;
  const std::int64_t values = (rows_of_warp > 1 ? 4 : 2) * ChannelsLast::kBlock;  // of an item, summed at once
  const std::int64_t scratch = std::max(threads * 16, values * (threads / rows_of_warp + lanes) * 4);
  constexpr std::int64_t kOfLane = ChannelsLast::kBlock * (16 + 4) + 4;
  return scratch + lanes * kOfLane + 16;
}

/// Of an image that the kernel reads beside `images` − 1 others, among columns of so many lanes. Nothing where it does
/// not fit.
std::optional<Division> division_of(const Context& context, const ChannelsLast& image, std::int64_t images,
                                    std::int64_t lanes, bool may_meet) {
  const auto most = static_cast<std::int64_t>(std::min<std::size_t>(512, context.limits().max_work_group));
  const std::int64_t turn = most / lanes, threads = turn * lanes;
  if (threads < lanes * ChannelsLast::kBlock || image.rows() == 0) return {};
  const std::int64_t columns = divide_up(image.channels() / ChannelsLast::kBlock, lanes);
  // All groups are on the device at once if there are fewer than compute units, also beside a kernel that waits for
  // another device.
  const std::int64_t units = std::int64_t{context.limits().compute_units} - 1;
  if (may_meet && columns > units) return {};
  const std::int64_t most_parts = may_meet ? units / columns : 1;
  const std::int64_t part = divide_up(image.rows(), std::min(most_parts, divide_up(image.rows(), turn)));
  // Powers of two: fewer programs.
  const auto power = [](std::int64_t value) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
  };
  // At most 64 bytes of an item are on their way.
  const std::int64_t unroll = std::min<std::int64_t>(images == 1 ? 4 : 2, power(divide_up(part, turn)));
  const std::int64_t turns = divide_up(part, turn * unroll);
  const auto local =
      static_cast<std::int64_t>(declarable_local_memory(context.capability(), context.limits().local_memory));
  const std::int64_t room = local - bytes_of_sums(threads, lanes, context.capability().has_matrix_cores());
  const std::int64_t fit = room / (threads * unroll * ChannelsLast::kBlock * 2 * images);
  if (fit < 1) return {};
  return Division{threads, lanes, unroll, columns, part, divide_up(image.rows(), part), std::min(fit, power(turns))};
}

/// The division that is soonest done. On an H200 a meeting of groups takes 4 µs, as long as some turns of a row an
/// item; where a group has all rows, narrow columns let more groups work.
std::optional<Division> best_division(const Context& context, const ChannelsLast& image, std::int64_t images) {
  constexpr std::int64_t kMeetingTurns = 5;
  const std::int64_t blocks = image.channels() / ChannelsLast::kBlock, lanes = lanes_of(blocks);
  const bool can_meet = context.capability().has_matrix_cores();
  std::optional<Division> best = division_of(context, image, images, lanes, can_meet);
  if (!can_meet) return best;
  const auto turns = [](const Division& by) {
    return divide_up(by.part, by.threads / by.lanes) + (by.parts > 1 ? kMeetingTurns : 0);
  };
  for (std::int64_t narrow = lanes; narrow > 1; narrow = std::bit_floor(static_cast<std::uint64_t>(narrow - 1))) {
    const std::optional<Division> alone = division_of(context, image, images, narrow, false);
    if (alone && (!best || turns(*alone) < turns(*best))) best = alone;
  }
  return best;
}

}  // namespace

std::unique_ptr<Kernel> resident_batch_norm(Context& context, const ChannelsLast& image, ResidentPass pass,
                                            const EpilogueText& epilogue) {
  const std::optional<Division> by = best_division(context, image, pass.images);
  if (!by) return nullptr;
  const bool planned = context.capability().has_matrix_cores();
  const std::optional<std::string> forced = forced_batch_norm();
  if (forced) {
    if (*forced != "resident") return nullptr;
  } else if (!context.alternatives().should_use(alternative::kBatchNormResident, planned)) {
    return nullptr;
  }

  constexpr std::int64_t kPitch = 32;  // a line of the cache for the count of each column
  const KeptArgument meeting = kept(size(by->columns * kPitch) * sizeof(std::uint32_t));
  std::vector<Argument> arguments = std::move(pass.operands);
  arguments.insert(arguments.end(), {workspace(0, 16), meeting});
  for (const std::int64_t value : {image.rows(), image.channels() / ChannelsLast::kBlock, by->part, image.places()}) {
    arguments.emplace_back(as_uint(value));
  }
  arguments.emplace_back(pass.epsilon);
  std::vector<Argument> packed{PackedArguments{std::move(arguments)}};
  packed.insert(packed.end(), epilogue.arguments.begin(), epilogue.arguments.end());

  std::vector<std::string> definitions = number_definitions(context, image.number());
  for (std::string& one : memory_definitions(context)) definitions.push_back(std::move(one));
  definitions.push_back(fmt::format("THREADS={}", by->threads));
  definitions.push_back(fmt::format("LANES={}", by->lanes));
  definitions.push_back(fmt::format("UNROLL={}", by->unroll));
  definitions.push_back(fmt::format("KEPT={}", by->kept));
  definitions.push_back(fmt::format("MEETING_PITCH={}", kPitch));
  if (pass.images == 2) definitions.emplace_back("BACKWARD");
  if (by->parts > 1) definitions.emplace_back("PARTS_MEET");
  constexpr const char* kFile = "ops/batch_norm_resident.cl";
  std::vector<StagedKernel::AnyStage> stages;
  if (by->parts > 1) {
    stages.emplace_back(Stage{.program = context.program(kFile, definitions),
                              .function = "meetings_begin",
                              .arguments = {meeting},
                              .global = {size(by->columns * kPitch), 1, 1},
                              .local = {size(kPitch), 1, 1},
                              .once = true});
  }
  stages.emplace_back(Stage{context.program_from(epilogue.text + kernel_source(kFile), definitions),
                            std::move(pass.function),
                            std::move(packed),
                            {size(by->columns * by->threads), size(by->parts), 1},
                            {size(by->threads), 1, 1}});
  const std::size_t sums = size(by->parts * image.channels()) * 16;
  return std::make_unique<StagedKernel>(context, fmt::format("{} resident", pass.name), std::move(stages),
                                        sums * size(pass.images));
}

}  // namespace concord::opencl
