// Depthwise convolutions, and the gradient of their filters, on images that lie channels-last
// (cl_kernels/conv/depthwise_columns.cl).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kGroupItems = 128;

/// Widths of filters, by which the registers of an item differ.
constexpr std::int64_t kSmall = 3, kMedium = 5;

/// Columns of an item at a time: as many as registers hold with the filters, or their sums.
std::int64_t strip_of(const ops::ConvSizes& sizes) {
  return sizes.kw <= kSmall || (sizes.kw <= kMedium && sizes.options.stride[2] == 1) ? 4 : 2;
}

/// Segments of an image, how many rows each has, and how many turns a group takes, one behind the other.
struct Segments {
  std::int64_t count, rows, turns;

  /// The choice that is expected to end first. An image has `height` rows, of which each segment reads `behind` more.
  /// `items` of one segment of all images, idle ones included. A group takes at most `turns_at_most` turns.
  Segments(const Context& context, const ops::ConvSizes& sizes, std::int64_t height, std::int64_t behind,
           std::int64_t items, std::int64_t turns_at_most) {
    constexpr std::int64_t kFewestRows = 7;
    // Groups that run at once, by the registers of an item.
    const std::int64_t of_unit = sizes.kw <= kSmall ? 4 : sizes.kw <= kMedium ? 3 : 2;
    const std::int64_t at_once = context.limits().compute_units * of_unit;
    std::int64_t least = 0;
    for (std::int64_t wanted = 1; wanted <= divide_up(height, kFewestRows); ++wanted) {
      const std::int64_t rows_of_one = divide_up(height, wanted), found = divide_up(height, rows_of_one);
      const std::int64_t groups = divide_up(found * items, kGroupItems);
      const std::int64_t each = std::clamp<std::int64_t>(groups / at_once, 1, turns_at_most);
      const std::int64_t time = divide_up(divide_up(groups, each), at_once) * each * (rows_of_one + behind);
      if (least != 0 && time >= least) continue;
      least = time;
      count = found;
      rows = rows_of_one;
      turns = each;
    }
  }
};

/// The largest power of two, at most 32, that leaves at most an eighth of the lanes without channels.
std::int64_t lanes_of(std::int64_t pairs) {
  std::int64_t lanes = 32;
  while (lanes > 1 && round_up(pairs, lanes) - pairs > pairs / 8) lanes /= 2;
  return lanes;
}

std::vector<std::string> definitions_of(Context& context, const ConvProblem& problem, std::int64_t stride) {
  const ops::ConvSizes& s = problem.sizes;
  std::vector<std::string> definitions = number_definitions(context, storage_number(problem.request.precision));
  definitions.insert(definitions.end(), {"BLOCK_CHANNELS=2", fmt::format("KERNEL_H={}", s.kh),
                                         fmt::format("KERNEL_W={}", s.kw), fmt::format("STRIDE={}", stride),
                                         fmt::format("STRIP={}", strip_of(s)), fmt::format("THREADS={}", kGroupItems)});
  return definitions;
}

/// Rows of a segment, the sizes of both images and the padding.
void add_sizes(std::vector<Argument>& arguments, std::int64_t rows, const ImageSizes& source, const ImageSizes& result,
               const ImageSizes& padding) {
  for (const std::int64_t value :
       {rows, source.height, source.width, result.height, result.width, padding.height, padding.width}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
}

}  // namespace

Stage depthwise_turn(Context& context, const ops::ConvSizes& sizes, bool flip) {
  std::vector<std::string> definitions{fmt::format("TAPS={}", sizes.taps())};
  if (flip) definitions.emplace_back("FLIP");
  Stage stage{context.program("conv/depthwise_turn.cl", definitions),
              "depthwise_turn",
              {input(1), workspace(), as_uint(sizes.c)}};
  blocking_of(context.limits(), sizes.c * sizes.taps(), 1).apply(stage);
  return stage;
}

std::unique_ptr<Kernel> depthwise_columns(Context& context, const ConvProblem& problem, const ImageSizes& source,
                                          const ImageSizes& result, const ImageSizes& padding,
                                          const EpilogueText& epilogue) {
  const ops::ConvSizes& s = problem.sizes;
  const bool is_gradient = problem.pass == ConvPass::backward_data;
  const std::int64_t stride = is_gradient ? 1 : s.options.stride[2];
  const std::int64_t pairs = s.c / 2, strips = divide_up(result.width, strip_of(s));
  const Segments segments(context, s, result.height, divide_up(s.kh, stride) - 1, s.n * strips * pairs, 1);
  const std::int64_t items = s.n * segments.count * strips * pairs;
  std::vector<Argument> arguments{input(0), workspace(0, 8), output(0)};
  for (const std::int64_t value : {items, pairs, strips, segments.count}) arguments.emplace_back(as_uint(value));
  add_sizes(arguments, segments.rows, source, result, padding);
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  Stage pass{context.program_from(epilogue.text + kernel_source("conv/depthwise_columns.cl"),
                                  definitions_of(context, problem, stride)),
             "depthwise_down",
             std::move(arguments),
             {size(round_up(items, kGroupItems)), 1, 1},
             {size(kGroupItems), 1, 1}};
  return std::make_unique<StagedKernel>(
      context, fmt::format("{} depthwise columns", problem.label),
      std::vector<StagedKernel::AnyStage>{depthwise_turn(context, s, is_gradient), std::move(pass)},
      size(s.c * s.taps()) * sizeof(float));
}

PreparedKernel depthwise_columns_backward_weights(Context& context, const ConvProblem& problem) {
  constexpr std::int64_t kSide = 32, kJoiningRows = 8, kMostTurns = 1024;
  const ops::ConvSizes& s = problem.sizes;
  const std::int64_t stride = s.options.stride[2], strips = divide_up(s.ow, strip_of(s));
  const std::int64_t pairs = s.c / 2, lanes = lanes_of(pairs), above = kGroupItems / lanes;
  const Segments segments(context, s, s.oh, divide_up(s.kh, stride) - 1, s.n * strips * round_up(pairs, lanes),
                          kMostTurns);
  const std::int64_t columns = s.n * segments.count * strips, part = segments.turns * above;
  const std::int64_t parts = divide_up(columns, part);
  std::vector<std::string> definitions = definitions_of(context, problem, stride);
  definitions.insert(definitions.end(), {fmt::format("LANES={}", lanes), fmt::format("ROWS={}", kJoiningRows)});
  const PendingProgram program = context.program("conv/depthwise_columns.cl", definitions);
  std::vector<Argument> arguments{input(0), input(1), workspace(0, 8)};
  for (const std::int64_t value : {columns, part, pairs, strips, segments.count}) {
    arguments.emplace_back(as_uint(value));
  }
  add_sizes(arguments, segments.rows, {s.h, s.w}, {s.oh, s.ow}, {s.options.padding[1], s.options.padding[2]});
  Stage add{program,
            "depthwise_weights",
            std::move(arguments),
            {size(divide_up(pairs, lanes) * kGroupItems), size(parts), 1},
            {size(kGroupItems), 1, 1}};
  Stage join{program,
             "depthwise_weights_join",
             {workspace(), output(0), as_uint(s.c), as_uint(parts)},
             {size(round_up(s.c * s.taps(), kSide)), size(kJoiningRows), 1},
             {size(kSide), size(kJoiningRows), 1}};
  auto kernel = std::make_unique<StagedKernel>(context, fmt::format("{} depthwise columns", problem.label),
                                               std::vector<StagedKernel::AnyStage>{std::move(add), std::move(join)},
                                               size(parts * s.c * s.taps()) * sizeof(float));
  return prepared_channels_last(problem.request, std::move(kernel), std::array<std::size_t, 2>{0, 1}, {});
}

}  // namespace concord::opencl
