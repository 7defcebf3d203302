// The choice among the ways of batch normalisation, and the sizes of their launches. CONCORD_DEBUG=batch_norm names a
// way for every device.
#include "concord/opencl/ops/batch_norm_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kLeastThreads = 32;

/// Parts of whole images.
BatchNormCut cut_into_runs(const Context& context, std::int64_t images, std::int64_t channels, std::int64_t plane) {
  const std::int64_t units = context.limits().compute_units;
  // About two items per compute unit, but at least a thousand values per part.
  const std::int64_t wanted = std::min(divide_up(2 * units, channels), divide_up(images * plane, 1024));
  const std::int64_t part = divide_up(images, std::clamp<std::int64_t>(wanted, 1, images));
  return {BatchNormWay::runs,
          "ops/batch_norm_contiguous.cl",
          {},
          1,
          1,
          channels,
          divide_up(images, part),
          {static_cast<std::uint64_t>(images), static_cast<std::uint64_t>(channels), static_cast<std::uint64_t>(plane),
           static_cast<std::uint64_t>(part)}};
}

/// The values of a channel as the kernels of work-groups count them: `width` neighbouring ones of a plane at once.
struct Values {
  std::int64_t channels, width, unroll, line, count;

  Values(std::int64_t images, std::int64_t channel_count, std::int64_t plane)
      : channels(channel_count),
        width(plane % 4 == 0 ? 4 : 1),
        unroll(width == 4 ? 4 : 8),
        line(plane / width),
        count(images * line) {}
  [[nodiscard]] BatchNormCut cut(BatchNormWay way, std::string file, std::int64_t threads, std::int64_t part) const {
    CONCORD_CHECK(channels * line < std::int64_t{1} << 32, NotSupported,
                  "batch_norm of images of {} channels of {} values: more than an index of 32 bits reaches", channels,
                  line * width);
    const FastDivisor divisor = fast_divisor(line);
    return {way,
            std::move(file),
            {fmt::format("THREADS={}", threads), fmt::format("WIDTH={}", width)},
            size(threads),
            size(width),
            channels,
            divide_up(count, part),
            {as_uint(count), divisor.divisor, divisor.multiplier, divisor.shift, as_uint((channels - 1) * line),
             as_uint(part)}};
  }
};

/// Parts of any length.
BatchNormCut cut_into_groups(const Context& context, const Values& values) {
  constexpr std::int64_t kGroupsPerUnit = 16, kMostParts = 128;
  const auto limit =
      static_cast<std::int64_t>(std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group)));
  const auto useful = std::bit_ceil(static_cast<std::uint64_t>(divide_up(values.count, values.unroll)));
  const std::int64_t threads =
      std::min(limit, static_cast<std::int64_t>(std::max<std::uint64_t>(kLeastThreads, useful)));
  // Each compute unit gets several groups, as long as each item has at least one iteration.
  const std::int64_t wanted = (kGroupsPerUnit * context.limits().compute_units + values.channels / 2) / values.channels;
  const std::int64_t most = std::min({kMostParts, threads, divide_up(values.count, threads * values.unroll)});
  const std::int64_t part =
      divide_up(divide_up(values.count, std::clamp<std::int64_t>(wanted, 1, most)), threads) * threads;
  return values.cut(BatchNormWay::groups, "ops/batch_norm.cl", threads, part);
}

/// The items of a group that owns a channel, and the turns whose values each of them holds; 0: it reads them again.
struct WholeGroup {
  std::int64_t threads, held;
};

/// As few items as keep all values of `operands` images in 32 registers each, but enough to have many reads in flight;
/// where there is no such number, the most.
WholeGroup whole_group(const Context& context, const Values& values, std::int64_t operands) {
  constexpr std::int64_t kRegisters = 32, kEnoughThreads = 192, kMostThreads = 1024;
  const auto limit = std::min(kMostThreads, static_cast<std::int64_t>(context.limits().max_work_group)) /
                     kLeastThreads * kLeastThreads;
  for (std::int64_t held = kRegisters / (operands * values.width * values.unroll); held > 0; --held) {
    const std::int64_t threads = round_up(divide_up(values.count, held * values.unroll), kLeastThreads);
    if (threads <= limit && (held == 1 || threads >= kEnoughThreads)) return {threads, held};
  }
  return {limit, 0};
}

/// Whether one launch, in which a group owns a channel, is faster than two. It is where the group holds the values of
/// the channel: each is read once. Where it reads them again, they have to come from a cache, so the channel is small,
/// and there have to be groups for at least half of the compute units.
bool is_faster_whole(const Context& context, const Values& values, const WholeGroup& group) {
  constexpr std::int64_t kMostOfItem = 64;  // with 1024 items, 256 KiB of a channel
  if (group.held > 0) return true;
  return values.count * values.width <= kMostOfItem * group.threads &&
         2 * values.channels >= context.limits().compute_units;
}

BatchNormWay batch_norm_way(const Context& context, bool is_whole_faster) {
  std::optional<std::string> forced = forced_batch_norm();
  if (forced == "resident") forced.reset();
  const bool in_groups = static_cast<std::int64_t>(context.limits().max_work_group) >= kLeastThreads;
  CONCORD_CHECK(in_groups || !forced || forced == "runs", NotSupported,
                "CONCORD_DEBUG: batch_norm is \"{}\", whose kernels need work-groups of {} items; the limit of "
                "this device is {}",
                *forced, kLeastThreads, context.limits().max_work_group);
  if (forced)
    return *forced == "whole" ? BatchNormWay::whole : *forced == "groups" ? BatchNormWay::groups : BatchNormWay::runs;
  if (!in_groups) return BatchNormWay::runs;
  OpenClAlternatives& alternatives = context.alternatives();
  const bool is_whole =
      alternatives.prefers_first(alternative::kBatchNormWhole, alternative::kBatchNormGroups, is_whole_faster);
  const std::string_view of_groups = is_whole ? alternative::kBatchNormWhole : alternative::kBatchNormGroups;
  if (!alternatives.should_use_first(of_groups, alternative::kBatchNormRuns, !context.limits().is_cpu)) {
    return BatchNormWay::runs;
  }
  return is_whole ? BatchNormWay::whole : BatchNormWay::groups;
}

}  // namespace

std::optional<std::string> forced_batch_norm() {
  return debug_choice("batch_norm", {"whole", "groups", "runs", "resident"});
}

BatchNormCut batch_norm_cut(const Context& context, const Shape& src, std::int64_t operands) {
  const std::int64_t images = src[0], channels = src[1], plane = src.elements() / (images * channels);
  CONCORD_CHECK(images * plane < std::int64_t{1} << 31, NotSupported,
                "batch_norm of {}: more than 2^31 - 1 values a channel", src.str());
  const Values values(images, channels, plane);
  const WholeGroup group = whole_group(context, values, operands);
  const bool has_short_places = values.channels * values.count < std::int64_t{1} << 32;
  const BatchNormWay way = batch_norm_way(context, has_short_places && is_faster_whole(context, values, group));
  if (way == BatchNormWay::runs) return cut_into_runs(context, images, channels, plane);
  if (way == BatchNormWay::groups || !has_short_places) return cut_into_groups(context, values);
  BatchNormCut cut = values.cut(BatchNormWay::whole, "ops/batch_norm_whole.cl", group.threads, values.count);
  if (group.held > 0) cut.definitions.push_back(fmt::format("HELD={}", group.held));
  return cut;
}

}  // namespace concord::opencl
