// RowsGrid: the distribution of an image's rows over work-groups, for images in channels-last layout
// (cl_kernels/shared/channels_last_rows.h). Used by batch normalisation and sums by channel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// A work-group owns `lanes` blocks of channels and one of `parts` parts of the rows. A second launch joins the parts,
/// with one work-group per channel. The workspace holds `sums`, at least two values per channel and part, followed by
/// four values per channel.
class RowsGrid {
 public:
  /// `numbers`: 2, 4 or 8 values per channel and part; kernels access them as vectors of up to 4. `groups_per_unit`: of
  /// a compute unit, where there are enough rows. Few suffice where a row is quickly done.
  RowsGrid(Context& context, const ChannelsLast& image, std::string_view file, std::int64_t numbers = 2,
           std::int64_t groups_per_unit = 8);

  [[nodiscard]] std::int64_t parts() const { return parts_; }
  /// Rows of a part; the last one has the rest.
  [[nodiscard]] std::int64_t part() const { return part_; }
  /// Blocks of a group: LANES of the program.
  [[nodiscard]] std::int64_t lanes() const { return lanes_; }
  /// Groups beside each other, each with its channels.
  [[nodiscard]] std::int64_t columns() const;
  /// Items of a group: THREADS of the program.
  [[nodiscard]] std::int64_t threads() const { return threads_; }
  [[nodiscard]] Argument sums() const { return workspace(0, numbers_ == 2 ? 8 : 16); }
  [[nodiscard]] Argument factors() const { return workspace(sums_bytes(), 16); }
  [[nodiscard]] std::size_t workspace_bytes() const;

  /// The file's program, with the definitions `more` in addition to those of the grid.
  [[nodiscard]] PendingProgram program(const EpilogueText& epilogue, std::vector<std::string> more = {}) const;

  /// A launch of all groups. The kernel gets `arguments`, SIZES, `last` and the arguments of the epilogue.
  [[nodiscard]] Stage over_blocks(std::string function, std::vector<Argument> arguments,
                                  const EpilogueText& epilogue = {}, std::vector<std::string> more = {},
                                  const std::vector<Argument>& last = {}) const;
  /// The launch that joins the parts. The kernel gets `arguments`, the rows, channels, rows per part and parts, then
  /// `last`.
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
