// The gradient of the filters of a depthwise convolution on images that lie channels-last
// (cl_kernels/conv/depthwise_columns.cl).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kThreads = 128;

/// How the columns of images are divided among groups.
struct Division {
  std::int64_t lanes;           // pairs of channels of a group
  std::int64_t strip, strips;   // columns of an item at a time, and such strips of an image
  std::int64_t segments, rows;  // of an image, and of diff_dst in one
  std::int64_t part, parts;     // strips of segments of a group, and groups that share the channels

  Division(const Context& context, const ops::ConvSizes& sizes);

 private:
  /// The largest power of two that leaves at most an eighth of the lanes without channels.
  static std::int64_t lanes_of(std::int64_t pairs) {
    std::int64_t lanes = 32;
    while (lanes > 1 && round_up(pairs, lanes) - pairs > pairs / 8) lanes /= 2;
    return lanes;
  }
};

Division::Division(const Context& context, const ops::ConvSizes& sizes) {
  constexpr std::int64_t kSmall = 3, kMedium = 5, kFewestRows = 7;
  const std::int64_t stride = sizes.options.stride[2], pairs = sizes.c / 2;
  // As many as registers hold: sums and two rows.
  strip = sizes.kw <= kSmall || (sizes.kw <= kMedium && stride == 1) ? 4 : 2;
  strips = divide_up(sizes.ow, strip);
  lanes = lanes_of(pairs);
  const std::int64_t wide = divide_up(pairs, lanes), above = kThreads / lanes;
  // Groups that run at once, by the registers of an item.
  const std::int64_t at_once = context.limits().compute_units * (sizes.kw <= kSmall ? 4 : sizes.kw <= kMedium ? 3 : 2);
  const std::int64_t behind = divide_up(sizes.kh, stride) - 1;  // rows that a segment reads beyond its own
  std::int64_t least = 0;
  for (std::int64_t wanted = 1; wanted <= divide_up(sizes.oh, kFewestRows); ++wanted) {
    const std::int64_t rows_of_one = divide_up(sizes.oh, wanted), count = divide_up(sizes.oh, rows_of_one);
    const std::int64_t turns = divide_up(sizes.n * count * strips, above);  // of all groups of the same channels
    const std::int64_t each = std::max<std::int64_t>(1, turns * wide / at_once);
    const std::int64_t groups = divide_up(turns, each);
    const std::int64_t time = divide_up(groups * wide, at_once) * each * (rows_of_one + behind);
    if (least != 0 && time >= least) continue;
    least = time;
    segments = count;
    rows = rows_of_one;
    part = each * above;
    parts = groups;
  }
}

}  // namespace

PreparedKernel prepare_depthwise_columns(Context& context, const ConvProblem& problem) {
  constexpr std::int64_t kSide = 32, kJoiningRows = 8;
  const ops::ConvSizes& s = problem.sizes;
  const Division division(context, s);
  std::vector<std::string> definitions = number_definitions(context, storage_number(problem.request.precision));
  definitions.insert(definitions.end(),
                     {"BLOCK_CHANNELS=2", fmt::format("KERNEL_H={}", s.kh), fmt::format("KERNEL_W={}", s.kw),
                      fmt::format("STRIDE={}", s.options.stride[2]), fmt::format("STRIP={}", division.strip),
                      fmt::format("THREADS={}", kThreads), fmt::format("LANES={}", division.lanes),
                      fmt::format("ROWS={}", kJoiningRows)});
  const PendingProgram program = context.program("conv/depthwise_columns.cl", definitions);
  const std::int64_t pairs = s.c / 2;
  std::vector<Argument> arguments{input(0), input(1), workspace(0, 8)};
  for (const std::int64_t value :
       {s.n * division.segments * division.strips, division.part, pairs, division.strips, division.segments}) {
    arguments.emplace_back(as_uint(value));
  }
  for (const std::int64_t value : {division.rows, s.h, s.w, s.oh, s.ow, s.options.padding[1], s.options.padding[2]}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  Stage add{program,
            "depthwise_weights",
            std::move(arguments),
            {size(divide_up(pairs, division.lanes) * kThreads), size(division.parts), 1},
            {size(kThreads), 1, 1}};
  Stage join{program,
             "depthwise_weights_join",
             {workspace(), output(0), as_uint(s.c), as_uint(division.parts)},
             {size(round_up(s.c * s.taps(), kSide)), size(kJoiningRows), 1},
             {size(kSide), size(kJoiningRows), 1}};
  auto kernel = std::make_unique<StagedKernel>(context, fmt::format("{} depthwise channels-last", problem.label),
                                               std::vector<StagedKernel::AnyStage>{std::move(add), std::move(join)},
                                               size(division.parts * s.c * s.taps()) * sizeof(float));
  return prepared_channels_last(problem.request, std::move(kernel), std::array<std::size_t, 2>{0, 1}, {});
}

}  // namespace concord::opencl
