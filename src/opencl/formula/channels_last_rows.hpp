// RowsGrid: how work-groups share the rows of an image that lies channels-last (cl_kernels/shared/channels_last_rows.h). Used
// by batch normalisation, sums by channel and depthwise convolutions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Groups have `lanes` blocks of channels and one of `parts` parts of the rows; joins have a group for each channel.
/// The workspace holds `sums`, two numbers for each channel of each part or more, and behind them four for each
/// channel.
class RowsGrid {
 public:
  /// `numbers`: 2, 4 or 8 for each channel of each part; kernels take them as vectors of up to 4.
  RowsGrid(Context& context, const ChannelsLast& image, std::string_view file, std::int64_t numbers = 2);

  [[nodiscard]] std::int64_t parts() const { return parts_; }
  [[nodiscard]] Argument sums() const { return workspace(0, numbers_ == 2 ? 8 : 16); }
  [[nodiscard]] Argument factors() const { return workspace(sums_bytes(), 16); }
  [[nodiscard]] std::size_t workspace_bytes() const;

  /// The file's program, with `more` definitions than the grid's.
  [[nodiscard]] PendingProgram program(const EpilogueText& epilogue, std::vector<std::string> more = {}) const;

  /// A launch of all groups: SIZES, `last` and the epilogue's arguments follow those given.
  [[nodiscard]] Stage over_blocks(std::string function, std::vector<Argument> arguments,
                                  const EpilogueText& epilogue = {}, std::vector<std::string> more = {},
                                  const std::vector<Argument>& last = {}) const;
  /// A launch of the joins: rows, channels, rows of a part and parts follow the arguments, then `last`.
  [[nodiscard]] Stage over_channels(std::string function, std::vector<Argument> arguments,
                                    const std::vector<Argument>& last = {}) const;

 private:
  static constexpr std::int64_t kJoiners = 64;
  [[nodiscard]] std::int64_t blocks() const { return channels_ / ChannelsLast::kBlock; }
  [[nodiscard]] std::size_t sums_bytes() const;
  Context& context_;
  std::string file_;
  DType number_;
  std::int64_t numbers_, rows_, places_, channels_, threads_, lanes_, part_, parts_;
};

}  // namespace concord::opencl
