// The data gradient of a strided convolution by phases. Along an axis, the places y of diff_src with equal
// (y + padding) mod stride meet the same taps, at neighbouring pixels of diff_dst: all places of a phase are one
// product over its own taps, without the zeros that the product over all places multiplies by.
#include "concord/opencl/conv/polyphase.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "concord/opencl/conv/filters.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

PatchSizes kernel_of(const ops::ConvSizes& s) { return {s.kd, s.kh, s.kw}; }
PatchSizes src_of(const ops::ConvSizes& s) { return {s.d, s.h, s.w}; }
PatchSizes dst_of(const ops::ConvSizes& s) { return {s.od, s.oh, s.ow}; }

/// A phase along one axis: place i is first_place + i·stride and meets tap first_tap + j·tap_step at pixel
/// shift + i − j·move of diff_dst.
struct AxisPhase {
  std::int64_t first_place, places, first_tap, tap_step, taps, shift, move;
};

/// The phases that have places; some may have no tap.
std::vector<AxisPhase> axis_phases(const ops::ConvSizes& s, std::size_t axis) {
  const std::int64_t stride = s.options.stride[axis], dilation = s.options.dilation[axis];
  const std::int64_t padding = s.options.padding[axis], kernel = kernel_of(s)[axis], width = src_of(s)[axis];
  const std::int64_t common = std::gcd(stride, dilation), tap_step = stride / common;
  std::vector<AxisPhase> phases;
  for (std::int64_t first = 0; first < std::min(stride, width); ++first) {
    AxisPhase phase{first, (width - first + stride - 1) / stride, 0, tap_step, 0, 0, dilation / common};
    for (std::int64_t tap = 0; tap < std::min(tap_step, kernel); ++tap) {
      const std::int64_t distance = first + padding - tap * dilation;
      if (distance % stride != 0) continue;
      phase.first_tap = tap;
      phase.taps = (kernel - tap + tap_step - 1) / tap_step;
      phase.shift = distance / stride;
      break;
    }
    phases.push_back(phase);
  }
  return phases;
}

using Phase = std::array<AxisPhase, 3>;
std::int64_t taps_of(const Phase& phase) { return phase[0].taps * phase[1].taps * phase[2].taps; }
std::int64_t places_of(const Phase& phase) { return phase[0].places * phase[1].places * phase[2].places; }

struct PhaseList {
  std::array<std::vector<AxisPhase>, 3> axes;
  [[nodiscard]] std::int64_t reached(std::size_t axis) const {
    return std::ranges::count_if(axes[axis], [](const AxisPhase& phase) { return phase.taps > 0; });
  }
  [[nodiscard]] std::int64_t products() const { return reached(0) * reached(1) * reached(2); }
  /// Whether there are places that no tap reaches.
  [[nodiscard]] bool leaves_places() const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (reached(axis) != std::ssize(axes[axis])) return true;
    }
    return false;
  }
  /// Those with taps.
  [[nodiscard]] std::vector<Phase> list() const {
    std::vector<Phase> found;
    for (const AxisPhase& z : axes[0]) {
      for (const AxisPhase& y : axes[1]) {
        for (const AxisPhase& x : axes[2]) {
          if (z.taps * y.taps * x.taps > 0) found.push_back({z, y, x});
        }
      }
    }
    return found;
  }
};
PhaseList phases_of(const ops::ConvSizes& s) { return {{axis_phases(s, 0), axis_phases(s, 1), axis_phases(s, 2)}}; }

Patch patch_of(const ops::ConvSizes& s, const Phase& phase) {
  const PatchSizes dst = dst_of(s);
  Patch patch;
  patch.k = {taps_of(phase), phase[1].taps * phase[2].taps, phase[2].taps, s.dst_plane()};
  patch.n = {places_of(phase), phase[1].places * phase[2].places, phase[2].places, s.o * s.dst_plane()};
  patch.size = dst;
  patch.inside = true;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto& [first_place, places, first_tap, tap_step, taps, shift, move] = phase[axis];
    // What has one tap or place does not move: so images and signals have no depth.
    patch.k.move[axis] = taps > 1 ? -move : 0;
    patch.n.move[axis] = places > 1 ? 1 : 0;
    patch.shift[axis] = shift;
    if (shift - (taps - 1) * move < 0 || shift + places > dst[axis]) patch.inside = false;
  }
  return patch;
}

Gemm product_of(const ops::ConvSizes& s, const Phase& phase) {
  const PatchSizes src = src_of(s);
  Gemm gemm;
  gemm.m = s.group_c();
  gemm.n = s.n * places_of(phase);
  gemm.k = s.group_o() * taps_of(phase);
  gemm.batch = s.options.groups;
  gemm.a = {input(1), gemm.k * gemm.m, 1, gemm.m};
  gemm.b = {input(0), s.group_o() * s.dst_plane(), 0, 0, false, 0, true, s.n * s.o * s.dst_plane()};
  gemm.patch = patch_of(s, phase);
  gemm.c = {output(0), s.group_c() * s.src_plane(), s.src_plane(), places_of(phase), s.c * s.src_plane()};
  gemm.c.page = gemm.patch.n.page;
  gemm.c.line = gemm.patch.n.line;
  gemm.c.first = (phase[0].first_place * src[1] + phase[1].first_place) * src[2] + phase[2].first_place;
  const ops::Spatial& stride = s.options.stride;
  gemm.c.step = {stride[0] * src[1] * src[2], stride[1] * src[2], stride[2]};
  gemm.largest = std::max({s.n * s.c * s.src_plane(), s.n * s.o * s.dst_plane(), s.o * s.group_c() * s.taps()});
  return gemm;
}

Stage pack_stage(Context& context, const ops::ConvSizes& s, const std::vector<PhaseTap>& taps) {
  return {context.program("conv/polyphase.cl", {"INDEX=int"}),
          "conv_polyphase_pack",
          {input(1), workspace(), static_cast<std::uint32_t>(s.group_c()), static_cast<std::uint32_t>(s.taps()),
           constant_table<PhaseTap>(context, taps)},
          {size(s.group_c()), size(s.o), 1},
          {0, 0, 0}};
}

std::vector<std::uint8_t> reached_places(const ops::ConvSizes& s, const PhaseList& phases) {
  std::vector<std::uint8_t> reached;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::int64_t place = 0; place < src_of(s)[axis]; ++place) {
      reached.push_back(phases.axes[axis][size(place % s.options.stride[axis])].taps > 0 ? 1 : 0);
    }
  }
  return reached;
}

/// Of an image that lies channels-last.
Stage fill_blocks_stage(Context& context, const ops::ConvSizes& s, Precision precision, const PhaseList& phases,
                        const EpilogueText& epilogue) {
  const std::int64_t blocks = s.c / ChannelsLast::kBlock, count = s.n * s.src_plane() * blocks;
  std::vector<Argument> arguments;
  for (const std::int64_t value : {count, blocks, s.src_plane(), s.h, s.w}) {
    arguments.emplace_back(static_cast<std::uint32_t>(value));
  }
  arguments.emplace_back(constant_table<std::uint8_t>(context, reached_places(s, phases)));
  arguments.emplace_back(blocks_of(output(0)));
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  std::vector<std::string> definitions = number_definitions(context, storage_number(precision));
  definitions.insert(definitions.end(), {"C_CHANNELS_LAST", "INDEX=int"});
  Stage stage{context.program_from(epilogue.text + kernel_source("conv/polyphase.cl"), definitions),
              "conv_polyphase_fill_blocks", std::move(arguments)};
  blocking_of(context.limits(), count, 1).apply(stage);
  return stage;
}

Stage fill_stage(Context& context, const ops::ConvSizes& s, const PhaseList& phases, const EpilogueText& epilogue) {
  Gemm result;
  result.c = {output(0), s.group_c() * s.src_plane(), s.src_plane(), 0, s.c * s.src_plane()};
  result.largest = s.n * s.c * s.src_plane();
  // Neighbouring items of a GPU write neighbouring places; an item of a CPU goes along a row.
  const bool is_cpu = context.limits().is_cpu;
  const std::int64_t count = is_cpu ? s.w : 1;
  const std::size_t items = size(s.src_plane() / count);
  const std::size_t width = is_cpu ? 1 : std::min<std::size_t>(64, context.limits().max_work_group);
  std::vector<Argument> packed{static_cast<std::uint32_t>(s.src_plane()), static_cast<std::uint32_t>(count),
                               static_cast<std::uint32_t>(s.options.groups)};
  add_divisor(packed, s.h * s.w);
  add_divisor(packed, s.w);
  packed.emplace_back(static_cast<std::uint32_t>(s.d));
  packed.emplace_back(static_cast<std::uint32_t>(s.h));
  packed.emplace_back(constant_table<std::uint8_t>(context, reached_places(s, phases)));
  const std::vector<Argument> place = gemm_result_arguments(result);
  packed.insert(packed.end(), place.begin(), place.end());
  std::vector<Argument> arguments{PackedArguments{std::move(packed)}};
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  return {context.program_from(epilogue.text + kernel_source("conv/polyphase.cl"), {gemm_index_definition(result)}),
          "conv_polyphase_fill",
          std::move(arguments),
          {(items + width - 1) / width * width, size(s.group_c()), size(s.n * s.options.groups)},
          is_cpu ? std::array<std::size_t, 3>{0, 0, 0} : std::array<std::size_t, 3>{width, 1, 1}};
}

/// Which tap of the weights is tap i of a phase.
std::uint32_t tap_of(const ops::ConvSizes& s, const Phase& phase, const PatchPart& taps, std::int64_t i) {
  const PatchSizes at{i / taps.page, i % taps.page / taps.line, i % taps.line};
  std::int64_t tap = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    tap = tap * kernel_of(s)[axis] + phase[axis].first_tap + at[axis] * phase[axis].tap_step;
  }
  return static_cast<std::uint32_t>(tap);
}

void add_stages(std::vector<StagedKernel::AnyStage>& stages, const Kernel& kernel) {
  const auto& more = dynamic_cast<const StagedKernel&>(kernel).stages();
  stages.insert(stages.end(), more.begin(), more.end());
}

std::string with_phases(std::string_view name, std::size_t phases) {
  return fmt::format("{}, {} phase{}", name, phases, phases == 1 ? "" : "s");
}

/// The stages, which use `bytes` of the workspace, and after them those of the products.
std::unique_ptr<Kernel> with_products(Context& context, const ConvProblem& problem, std::span<const Gemm> products,
                                      std::vector<StagedKernel::AnyStage> stages, std::size_t bytes) {
  std::string name(problem.label);
  std::int64_t most = 0;
  for (const Gemm& gemm : products) {
    const std::unique_ptr<Kernel> kernel = prepare_gemm(context, gemm, problem.label);
    add_stages(stages, *kernel);
    bytes = std::max(bytes, kernel->workspace());
    if (gemm.n * gemm.k > most) name = kernel->name();
    most = std::max(most, gemm.n * gemm.k);
  }
  return std::make_unique<StagedKernel>(context, with_phases(name, products.size()), std::move(stages), bytes);
}

/// Whether what zeros cost in one product is more than what the further launches cost.
bool is_faster(const Context& context, const ops::ConvSizes& s) {
  const std::int64_t a_launch = context.limits().is_cpu ? 1'000'000 : 50'000'000;  // products in the time of one
  const PhaseList phases = phases_of(s);
  std::int64_t products = s.src_plane() * s.taps();  // that zeros cost, of a channel and an output
  for (const Phase& phase : phases.list()) products -= places_of(phase) * taps_of(phase);
  const std::int64_t launches =
      phases.products() + static_cast<std::int64_t>(phases.leaves_places()) + static_cast<std::int64_t>(s.taps() > 1);
  return products * s.n * s.c * s.group_o() >= (launches - 1) * a_launch;
}

}  // namespace

Polyphase conv_polyphase(const ops::ConvSizes& s) {
  constexpr std::int64_t kAlignment = 64;  // elements
  Polyphase result{{}, std::vector<PhaseTap>(size(s.taps())), 0};
  std::int64_t begin = 0;
  for (const Phase& phase : phases_of(s).list()) {
    Gemm gemm = product_of(s, phase);
    if (s.taps() > 1) {
      gemm.a.buffer = workspace(size(begin) * sizeof(float));
      for (std::int64_t i = 0; i < taps_of(phase); ++i) {
        result.taps[tap_of(s, phase, gemm.patch.k, i)] = {static_cast<std::uint32_t>(begin),
                                                          static_cast<std::uint32_t>(taps_of(phase)),
                                                          static_cast<std::uint32_t>(i), 0};
      }
      begin += (gemm.batch * gemm.k * gemm.m + kAlignment - 1) / kAlignment * kAlignment;
    }
    result.products.push_back(gemm);
  }
  result.packed_bytes = size(begin) * sizeof(float);
  for (Gemm& gemm : result.products) gemm.before_bytes = result.packed_bytes;
  return result;
}

std::string_view conv_polyphase_refusal(const ops::ConvSizes& s) {
  constexpr std::int64_t kMostProducts = 16, kMost = std::int64_t{1} << 31;
  if (s.options.stride == ops::Spatial{1, 1, 1}) return "the stride is 1";
  // Every product's part of the packed weights may be rounded up.
  if (s.o * s.group_c() * s.taps() + kMostProducts * 64 >= kMost) return "the weights have 2^31 elements";
  if (s.src_plane() >= kMost) return "a channel has 2^31 elements";
  return phases_of(s).products() <= kMostProducts ? kNoRefusal : "it has more than 16 phases";
}

std::unique_ptr<Kernel> prepare_polyphase(Context& context, const ConvProblem& problem, const EpilogueText& epilogue) {
  const ops::ConvSizes& s = problem.sizes;
  Polyphase phases = conv_polyphase(s);
  const PhaseList list = phases_of(s);
  std::vector<StagedKernel::AnyStage> stages;
  if (phases.packed_bytes > 0) stages.emplace_back(pack_stage(context, s, phases.taps));
  if (list.leaves_places()) stages.emplace_back(fill_stage(context, s, list, epilogue));
  for (Gemm& gemm : phases.products) {
    gemm.epilogue = epilogue;
    gemm.precision = problem.request.precision;
  }
  return with_products(context, problem, phases.products, std::move(stages), phases.packed_bytes);
}

PolyphaseBlocks prepare_polyphase_blocks(Context& context, const ConvProblem& problem, const EpilogueText& epilogue) {
  const ops::ConvSizes& s = problem.sizes;
  const Precision precision = problem.request.precision;
  const PhaseList list = phases_of(s);
  std::vector<StagedKernel::AnyStage> stages;
  if (list.leaves_places()) stages.emplace_back(fill_blocks_stage(context, s, precision, list, epilogue));
  std::vector<Gemm> products;
  std::vector<std::vector<std::uint32_t>> taps;
  for (const Phase& phase : list.list()) {
    Gemm gemm = product_of(s, phase);
    gemm.epilogue = epilogue;
    gemm.precision = precision;
    gemm.b.is_channels_last = gemm.c.is_channels_last = true;
    taps.emplace_back();
    // The copy engine walks forward over diff_dst, and so over the taps from the last to the first.
    for (std::int64_t i = taps_of(phase); i-- > 0;) taps.back().push_back(tap_of(s, phase, gemm.patch.k, i));
    products.push_back(std::move(gemm));
  }
  const auto largest = std::ranges::max_element(products, {}, [](const Gemm& gemm) { return gemm.n * gemm.k; });
  const std::int64_t padded = filter_channels(context, *largest);
  const auto filters = backward_filters(s, storage_number(precision), padded, std::move(taps));
  for (std::size_t p = 0; p < products.size(); ++p) {
    products[p].a.buffer = blocks_of(input(1));
    products[p].a.buffer.extra_bytes = filters->begin_of(p);
    products[p].a.filter_channels = padded;
  }
  if (const std::unique_ptr<Kernel> kernel = prepare_together(context, products, problem.label)) {
    add_stages(stages, *kernel);
    return {std::make_unique<StagedKernel>(context, with_phases(kernel->name(), products.size()) + " in one launch",
                                           std::move(stages), kernel->workspace()),
            filters};
  }
  return {with_products(context, problem, products, std::move(stages), 0), filters};
}

extern const ConvImplementation kPolyphaseConv{
    .name = "polyphase",
    .alternative = alternative::kPhases,
    .refusal =
        [](const Context&, const ConvProblem& problem) {
          return problem.pass == ConvPass::backward_data ? conv_polyphase_refusal(problem.sizes) : kOtherPass;
        },
    .seconds = [](Context& context,
                  const ConvProblem& problem) { return is_faster(context, problem.sizes) ? 0.0 : INFINITY; },
    .prepare =
        [](Context& context, const ConvProblem& problem) {
          return prepared(problem.request, prepare_polyphase(context, problem, conv_epilogue(problem)));
        }};

}  // namespace concord::opencl
