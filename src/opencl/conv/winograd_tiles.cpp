// Tiles of Winograd's transforms as launches, and their time.
#include "concord/opencl/conv/winograd_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

/// Bytes that the points of a slice may take: the more, the fewer launches; no more than a part of what a device can
/// hold in one piece.
std::int64_t most_bytes(const Context& context) {
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
  return static_cast<std::int64_t>(std::min(kMost, context.limits().allocation / 4));
}

void add_count(std::vector<Argument>& arguments, std::int64_t value) {
  arguments.emplace_back(static_cast<std::uint32_t>(value));
}

double product_bytes(const Gemm& gemm) {
  return static_cast<double>(gemm.batch * (gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n)) * sizeof(float);
}

double seconds_on_cpu(const Context& context, const WinogradWork& work) {
  constexpr double kBytesASecond = 3.5e9;    // of a core, where kCpuProductsASecond was measured
  constexpr double kLaunchesSeconds = 5e-5;  // three in place of one
  double products = 0, bytes = static_cast<double>(work.transformed) * sizeof(float);
  for (const Gemm& gemm : work.products) {
    products += multiplications(gemm);
    bytes += product_bytes(gemm);
  }
  const double seconds = products / kCpuProductsASecond + bytes / kBytesASecond;  // of one core
  return seconds / context.limits().compute_units + kLaunchesSeconds;
}

double seconds_on_gpu(Context& context, const WinogradWork& work) {
  const double rate = context.gpu().bytes_a_second / 2;  // transforms gather
  double seconds = static_cast<double>(work.transformed) * sizeof(float) / rate + kLaunchSeconds;
  for (const Gemm& gemm : work.products) {
    seconds += std::max(planned_seconds(context, gemm), product_bytes(gemm) / rate) + 2 * kLaunchSeconds;
  }
  return seconds;
}

}  // namespace

std::vector<WinogradSlice> winograd_slices(const Context& context, const WinogradTiles& tiles, std::int64_t channels) {
  constexpr std::int64_t kUnit = 128;  // a multiple of the width of most products' tiles
  const std::int64_t a_tile = kWinogradPoints * channels * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = std::max(most_bytes(context) / a_tile / kUnit * kUnit, kUnit), all = tiles.count();
  const std::int64_t even = divide_up(all, divide_up(all, most));
  const std::int64_t count = even == all ? all : round_up(even, kUnit);
  std::vector<WinogradSlice> slices;
  for (std::int64_t first = 0; first < all; first += count) {
    const std::int64_t here = std::min(count, all - first);
    slices.push_back({first, here, round_up(here, 4)});
  }
  return slices;
}

void add_winograd_tiles(std::vector<Argument>& arguments, const WinogradTiles& tiles, const WinogradSlice& slice) {
  for (const std::int64_t value : {slice.first, slice.count, slice.pitch}) add_count(arguments, value);
  add_divisor(arguments, tiles.in_image());
  add_divisor(arguments, tiles.in_row());
}

Stage winograd_points_stage(Context& context, const std::string& function, const WinogradImage& image,
                            const WinogradTiles& tiles, const WinogradSlice& slice, const BufferArgument& points) {
  std::vector<Argument> arguments{image.buffer, points};
  add_count(arguments, winograd_point_stride(image.channels * slice.pitch));
  add_count(arguments, image.channels);
  add_winograd_tiles(arguments, tiles, slice);
  for (const std::int64_t value : {image.rows, image.columns, image.first_row, image.first_column}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  return winograd_stage(context, context.program("conv/winograd.cl", {"INDEX=int"}), function,
                        {PackedArguments{std::move(arguments)}}, slice.pitch, image.channels);
}

Stage winograd_stage(const Context& context, PendingProgram program, std::string function,
                     std::vector<Argument> arguments, std::int64_t items, std::int64_t others) {
  const std::size_t width = std::min<std::size_t>(64, context.limits().max_work_group);
  return {std::move(program),
          std::move(function),
          std::move(arguments),
          {(size(items) + width - 1) / width * width, size(others), 1},
          {width, 1, 1}};
}

std::string winograd_name(const Kernel& product, std::size_t slices) {
  return product.name() + (slices == 1 ? ", winograd" : fmt::format(", winograd in {}", slices));
}

double winograd_seconds(Context& context, const WinogradWork& work) {
  return context.limits().is_cpu ? seconds_on_cpu(context, work) : seconds_on_gpu(context, work);
}

}  // namespace concord::opencl
