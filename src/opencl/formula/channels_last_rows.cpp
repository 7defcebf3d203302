// RowsGrid: parts, groups and launches over the rows of an image in channels-last layout.
#include "concord/opencl/formula/channels_last_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {

RowsGrid::RowsGrid(Context& context, const ChannelsLast& image, std::string_view file, std::int64_t numbers,
                   std::int64_t groups_per_unit)
    : context_(context),
      file_(file),
      number_(image.number()),
      numbers_(numbers),
      rows_(image.rows()),
      places_(image.places()),
      channels_(image.channels()) {
  // Sixteen lanes read 256 adjacent bytes. Each compute unit gets several groups, as long as each item has at least one
  // iteration.
  constexpr std::int64_t kMostLanes = 16, kUnroll = 4, kMostParts = 512;
  threads_ = static_cast<std::int64_t>(std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group)));
  const auto wide = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(blocks())));
  lanes_ = std::min({threads_, kMostLanes, wide});
  const std::int64_t turn = threads_ / lanes_ * kUnroll;
  const std::int64_t wanted = divide_up(groups_per_unit * context.limits().compute_units, columns());
  part_ = divide_up(divide_up(rows_, std::clamp<std::int64_t>(wanted, 1, kMostParts)), turn) * turn;
  parts_ = divide_up(rows_, part_);
}

std::int64_t RowsGrid::columns() const { return divide_up(blocks(), lanes_); }
std::size_t RowsGrid::sums_bytes() const { return size(divide_up(parts_ * channels_ * numbers_ * 4, 256) * 256); }
std::size_t RowsGrid::workspace_bytes() const { return sums_bytes() + size(channels_) * 16; }

PendingProgram RowsGrid::program(const EpilogueText& epilogue, std::vector<std::string> more) const {
  std::vector<std::string> definitions = number_definitions(context_, number_);
  definitions.insert(definitions.end(), more.begin(), more.end());
  definitions.push_back(fmt::format("THREADS={}", threads_));
  definitions.push_back(fmt::format("LANES={}", lanes_));
  definitions.push_back(fmt::format("JOINERS={}", kJoiners));
  return context_.program_from(epilogue.text + kernel_source(file_), definitions);
}

Stage RowsGrid::over_blocks(std::string function, std::vector<Argument> arguments, const EpilogueText& epilogue,
                            std::vector<std::string> more, const std::vector<Argument>& last) const {
  for (const std::int64_t value : {rows_, blocks(), part_, places_}) arguments.emplace_back(as_uint(value));
  arguments.insert(arguments.end(), last.begin(), last.end());
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  return {program(epilogue, std::move(more)),
          std::move(function),
          std::move(arguments),
          {size(columns() * threads_), size(parts_), 1},
          {size(threads_), 1, 1}};
}

Stage RowsGrid::over_channels(std::string function, std::vector<Argument> arguments,
                              const std::vector<Argument>& last) const {
  for (const std::int64_t value : {rows_, channels_, part_, parts_}) arguments.emplace_back(as_uint(value));
  arguments.insert(arguments.end(), last.begin(), last.end());
  return {program({}),
          std::move(function),
          std::move(arguments),
          {size(channels_ * kJoiners), 1, 1},
          {size(kJoiners), 1, 1}};
}

}  // namespace concord::opencl
