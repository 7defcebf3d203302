// How kernels read the operands to compute their scales, and the launches that do it.
#include "concord/opencl/gemm/hopper/scales.hpp"

#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

/// Of gemm/hopper/measure.cl and gemm/hopper/scales.h.
constexpr std::int64_t kMeasureThreads = 256, kWarp = 32, kSettleGroups = 32, kMixtureWords = 4, kFoundBytes = 16,
                       kAlignment = 256;

struct Extent {
  std::int64_t size, stride;
};

/// The elements of an operand: batches of slabs of rows of adjacent columns.
struct Region {
  BufferArgument source;
  Extent batches, slabs, rows;
  std::int64_t columns;
  enum class Scale { whole, slab, line } scale;  // what has one of its own; a line is a slab along k
  std::int64_t chunk = 0;

  [[nodiscard]] std::int64_t slab_elements() const { return rows.size * columns; }
  [[nodiscard]] std::int64_t slab_chunks() const { return divide_up(slab_elements(), chunk); }
  [[nodiscard]] std::int64_t chunks() const { return batches.size * slabs.size * slab_chunks(); }
  [[nodiscard]] std::int64_t batch_scales() const { return scale == Scale::whole ? 1 : slabs.size; }
  [[nodiscard]] std::int64_t scales() const { return batches.size * batch_scales(); }
  /// A warp reads a whole line and computes its scale at once.
  [[nodiscard]] bool knows_lines() const { return scale == Scale::line && slab_chunks() == 1; }
  /// Number of chunks per scale; 0 where each chunk has its own scale.
  [[nodiscard]] std::int64_t span() const { return knows_lines() ? 0 : chunks() / scales(); }
  /// The definitions that select how the kernel reads a slab.
  [[nodiscard]] std::vector<std::string> definitions() const {
    if (knows_lines()) return {"RUNS", "LINE"};
    if (rows.size == 1 || rows.stride == columns) return {"RUNS"};
    if (in_fours({batches.stride, slabs.stride, rows.stride, columns})) return {"VECTOR"};
    return {};
  }
};

/// Cuts a region into chunks that fill the device; the chunks of a slab are equal.
Region cut(const Context& context, Region region) {
  constexpr std::int64_t kLeast = 1024, kMost = 16384, kWarpsAUnit = 32;
  const std::int64_t elements = region.batches.size * region.slabs.size * region.slab_elements();
  const std::int64_t wanted = divide_up(elements, kWarpsAUnit * std::int64_t{context.limits().compute_units});
  region.chunk = std::clamp(round_up(wanted, kLeast), kLeast, kMost);
  region.chunk = round_up(divide_up(region.slab_elements(), region.slab_chunks()), 4 * kWarp);
  return region;
}

/// An operand that all batches share is read once.
Extent batches_of(const Gemm& gemm, std::int64_t stride) { return {stride == 0 ? 1 : gemm.batch, stride}; }

Region left_region(const Gemm& gemm, const PlaneForm& form) {
  const GemmLeft& a = gemm.a;
  const Extent batches = batches_of(gemm, a.batch);
  const bool k_inside = a.k == 1;
  if (form.kind == PlaneForm::Kind::matrix && k_inside) {
    return {a.buffer, batches, {gemm.m, a.row}, {1, 0}, gemm.k, Region::Scale::line};
  }
  const std::int64_t block = a.block != 0 ? a.block : gemm.k;
  const Extent slabs{gemm.k / block, a.outer};
  if (k_inside) return {a.buffer, batches, slabs, {gemm.m, a.row}, block, Region::Scale::whole};
  return {a.buffer, batches, slabs, {block, a.k}, gemm.m, Region::Scale::whole};
}

Region right_region(const Gemm& gemm, const PlaneForm& form) {
  const GemmRight& b = gemm.b;
  const Extent batches = batches_of(gemm, b.batch);
  if (form.kind == PlaneForm::Kind::matrix) {
    if (b.along_k) return {b.buffer, batches, {gemm.n, b.n}, {1, 0}, gemm.k, Region::Scale::line};
    return {b.buffer, batches, {1, 0}, {gemm.k, b.k}, gemm.n, Region::Scale::whole};
  }
  const ImageWalk walk(gemm);
  return {b.buffer,
          batches,
          {walk.images(), walk.image_stride()},
          {walk.channels(), walk.channel_stride()},
          walk.rows() * walk.columns(),
          form.kind == PlaneForm::Kind::image ? Region::Scale::slab : Region::Scale::whole};
}

/// Limits, as powers of two, of how far the mean magnitude of an operand, and on average its single values, may be
/// below its largest value. Scaled values have errors of 2^-40 of the largest value; the errors should be about 2^-24
/// or 2^-12 of the values themselves.
struct MixtureLimits {
  float most_below, most_mixed;
};
MixtureLimits limits_of(Precision precision) {
  return precision == Precision::tf32 ? MixtureLimits{0x1p28F, 0x1p21F} : MixtureLimits{0x1p16F, 0x1p13F};
}

Stage measure(Context& context, const Region& region, const MixtureLimits& limits, const BufferArgument& found,
              const BufferArgument& mixture) {
  const FastDivisor columns = fast_divisor(region.columns);
  Stage stage{
      context.program("gemm/hopper/measure.cl", region.definitions()),
      "planes_measure",
      {as_uint(region.slab_elements()), as_uint(region.chunk), as_uint(region.chunks()), as_uint(region.slabs.size),
       columns.divisor, columns.multiplier, columns.shift, region.source, as_ulong(region.batches.stride),
       as_ulong(region.slabs.stride), as_ulong(region.rows.stride), found, mixture},
      {size(divide_up(region.chunks(), kMeasureThreads / kWarp) * kMeasureThreads), 1, 1},
      {size(kMeasureThreads), 1, 1}};
  if (region.knows_lines()) stage.arguments.insert(stage.arguments.end(), {limits.most_below, limits.most_mixed});
  return stage;
}

}  // namespace

std::vector<Argument> OperandScales::arguments() const { return {inverses, as_uint(batch_scales), as_uint(step)}; }

PlaneScales measure_operands(Context& context, const Gemm& gemm, const PlaneForm& form, std::size_t begin) {
  const Region left = cut(context, left_region(gemm, form)), right = cut(context, right_region(gemm, form));
  const MixtureLimits limits = limits_of(gemm.precision);
  const std::size_t inverses = begin + size(kMixtureWords) * sizeof(std::uint32_t);
  const std::size_t found = begin + size(round_up((kMixtureWords + left.scales() + right.scales()) * 4, kAlignment));
  const auto scales_of = [](const Region& region, std::size_t at) {
    const bool is_shared = region.batches.stride == 0;
    return OperandScales{workspace(at), is_shared ? 0 : region.batch_scales(),
                         region.scale == Region::Scale::whole ? 0 : 1};
  };
  const BufferArgument mixture = workspace(begin, size(kMixtureWords) * sizeof(std::uint32_t));
  PlaneScales result{mixture,
                     scales_of(left, inverses),
                     scales_of(right, inverses + size(left.scales()) * sizeof(float)),
                     {},
                     found + size(round_up((left.chunks() + right.chunks()) * kFoundBytes, kAlignment))};
  result.stages.push_back(measure(context, left, limits, workspace(found, size(kFoundBytes)), mixture));
  result.stages.push_back(measure(context, right, limits,
                                  workspace(found + size(left.chunks() * kFoundBytes), size(kFoundBytes)), mixture));
  result.stages.push_back(
      {context.program("gemm/hopper/measure.cl", {}),
       "planes_settle",
       {as_uint(left.scales()), as_uint(left.span()), as_uint(right.scales()), as_uint(right.span()), limits.most_below,
        limits.most_mixed, workspace(found, size(kFoundBytes)), mixture, workspace(inverses)},
       {size(kSettleGroups * kMeasureThreads), 1, 1},
       {size(kMeasureThreads), 1, 1}});
  return result;
}

}  // namespace concord::opencl
