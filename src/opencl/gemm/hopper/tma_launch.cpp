// The definitions and arguments of the copy engine's products, and the stages before and behind their launch.
#include "concord/opencl/gemm/hopper/tma_launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/hopper/pack.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// What a launch needs to know of all its products before the first one's arguments.
struct LaunchShape {
  TmaTile tile;
  PlaneNumbers numbers;
  std::int64_t products, most_groups, tiles = 0, works = 0, most_parts = 1;  // tiles of C
  bool joins = false;
  [[nodiscard]] std::int64_t groups(const Context& context) const {
    return std::min({works, most_groups, tile.resident * std::int64_t{context.limits().compute_units}});
  }
  /// Each group is given two works.
  [[nodiscard]] bool has_claims(const Context& context) const { return works > 2 * groups(context); }
  [[nodiscard]] bool finishes() const { return joins || most_parts == 1; }
};

PlaneForm form_of(const Gemm& gemm, const LaunchShape& launch) {
  return plane_form(gemm, launch.tile.depth(launch.numbers));
}

std::int64_t tiles_of(const Gemm& gemm, const LaunchShape& launch) {
  return divide_up(form_of(gemm, launch).rows, TmaTile::kTmaRows) * divide_up(gemm.m, launch.tile.q) * gemm.batch;
}

LaunchShape shape_of(const Context& context, std::span<const Gemm> products, std::span<const TmaPlan> plans) {
  LaunchShape launch{plans[0].tile, plane_numbers(products[0]), std::ssize(products), plans[0].most_groups};
  for (std::size_t i = 0; i < products.size(); ++i) {
    const std::int64_t tiles = tiles_of(products[i], launch);
    launch.tiles += tiles;
    launch.works += tiles * plans[i].parts;
    launch.most_parts = std::max(launch.most_parts, plans[i].parts);
  }
  launch.joins = launch.most_parts > 1 && can_join_parts(context, launch.works);
  return launch;
}

/// The kept memories of a launch, and how much of them and of its works the products have taken so far.
struct Taken {
  KeptArgument maps, meetings;  // where those of the next product begin
  std::int64_t works = 0;
  std::size_t workspace = 0;
};

/// A product with its operands packed, and its arguments.
struct PreparedProduct {
  Gemm packed;
  std::vector<Argument> arguments;
};

PreparedProduct prepare_product(Context& context, const Gemm& gemm, const TmaPlan& plan, const LaunchShape& launch,
                                Taken& taken) {
  const PlaneForm form = form_of(gemm, launch);
  Gemm packed = gemm;
  packed.before_bytes = std::max(packed.before_bytes, taken.workspace);
  const std::vector<Argument> scales =
      pack_planes(context, packed, form, {TmaTile::kTmaRows, launch.tile.q, launch.tile.row_bytes}, taken.maps);
  if (form.kind == PlaneForm::Kind::image_turned && !gemm.c.has_taps_outside) packed.c = form.channels_first(gemm.c);

  const std::int64_t tiles = tiles_of(gemm, launch), works = tiles * plan.parts;
  std::vector<Argument> extra{further(taken.maps, 0, 1)};
  for (const std::int64_t number : {divide_up(form.rows, TmaTile::kTmaRows), form.tiles_k, plan.part_tiles, taken.works,
                                    works, form.channel_tiles, form.images}) {
    extra.emplace_back(as_uint(number));
  }
  extra.insert(extra.end(), scales.begin(), scales.end());
  if (launch.numbers.planes > 1) {  // sums are taken again where a split loses an infinity
    const RightOperand right = right_operand(context, gemm);
    extra.insert(extra.end(), right.arguments.begin(), right.arguments.end());
  }
  if (launch.joins) {
    extra.insert(extra.end(), {workspace(packed.before_bytes), taken.meetings, as_uint(plan.parts)});
  }
  std::vector<Argument> arguments = gemm_arguments(packed, launch.finishes() ? 1 : plan.parts, gemm.k, extra);

  taken.maps = further(taken.maps, kMapsBytes);
  taken.meetings = further(taken.meetings, size(tiles) * sizeof(std::uint32_t));
  taken.works += works;
  // Where any member is cut, all have their sums in the workspace.
  taken.workspace = launch.joins ? packed.before_bytes + size(plan.parts * gemm.batch * gemm.m * gemm.n) * sizeof(float)
                                 : gemm_workspace(packed, plan.parts);
  return {std::move(packed), std::move(arguments)};
}

Stage multiply_stage(Context& context, const LaunchShape& launch, const Gemm& packed, std::vector<Argument> arguments) {
  constexpr std::int64_t kThreads = TmaTile::kWarpgroups * 128 + 32;
  const TmaTile& tile = launch.tile;
  const std::int64_t groups = launch.groups(context);
  std::vector<std::string> definitions{std::string(form_of(packed, launch).definition()),
                                       fmt::format("WARPGROUPS={}", TmaTile::kWarpgroups),
                                       fmt::format("TILE_Q={}", tile.q),
                                       fmt::format("ROW_BYTES={}", tile.row_bytes),
                                       fmt::format("STAGES={}", tile.stages),
                                       fmt::format("STAGED_Q={}", tile.staged_q)};
  definitions.insert(definitions.end(), launch.numbers.definitions.begin(), launch.numbers.definitions.end());
  if (launch.joins) definitions.emplace_back("JOINED");
  if (launch.has_claims(context)) definitions.emplace_back("CLAIMED");
  if (launch.products > 1) definitions.push_back(fmt::format("MEMBERS={}", launch.products));
  return {gemm_program(context, packed, "gemm/hopper/tma.cl", launch.finishes(), std::move(definitions)),
          "gemm_tma_multiply",
          std::move(arguments),
          {size(groups * kThreads), 1, 1},
          {size(kThreads), 1, 1}};
}

}  // namespace

std::unique_ptr<Kernel> prepare_tma_launch(Context& context, std::span<const Gemm> products,
                                           std::span<const TmaPlan> plans, std::string_view label) {
  const LaunchShape launch = shape_of(context, products, plans);
  CONCORD_CHECK(products.size() == 1 || launch.finishes(), Error, "{} products are cut and do not fit on the device",
                products.size());
  const KeptArgument meetings = kept(size(launch.tiles) * sizeof(std::uint32_t));
  const std::size_t maps_bytes = products.size() * kMapsBytes;
  const KeptArgument maps = kept(maps_bytes + sizeof(std::uint32_t));
  Taken taken{maps, meetings};
  std::vector<StagedKernel::AnyStage> stages;
  std::vector<Argument> arguments, members;
  Gemm packed;
  for (std::size_t i = 0; i < products.size(); ++i) {
    CONCORD_CHECK(gemm_definitions(products[i]) == gemm_definitions(products[0]), Error,
                  "products of one launch differ in more than numbers");
    PreparedProduct product = prepare_product(context, products[i], plans[i], launch, taken);
    stages.insert(stages.end(), product.packed.before.begin(), product.packed.before.end());
    // The epilogue's arguments, behind the packed ones, are the same for all.
    if (i > 0) make_offsets(std::get<PackedArguments>(product.arguments.front()));
    members.push_back(product.arguments.front());
    if (i == 0) arguments.assign(product.arguments.begin() + 1, product.arguments.end());
    packed = std::move(product.packed);
  }
  arguments.insert(arguments.begin(), members.size() == 1 ? members[0] : PackedArguments{std::move(members)});
  Stage multiply = multiply_stage(context, launch, packed, std::move(arguments));
  std::string name =
      fmt::format("{} tma {}x{}{}", label, launch.tile.q, TmaTile::kTmaRows, products[0].is_scaled ? " scaled" : "");
  if (launch.has_claims(context)) {
    Stage begin{.program = multiply.program,
                .function = "claims_begin",
                .arguments = {further(maps, maps_bytes, 4)},
                .local = {1, 1, 1},
                .once = true};
    packed.before.push_back(begin);
    stages.emplace_back(std::move(begin));
  }
  if (!launch.finishes()) return gemm_staged(context, packed, std::move(name), std::move(multiply), plans[0].parts);
  if (launch.joins) {
    name += fmt::format(", k in {} joined", launch.most_parts);
    stages.emplace_back(Stage{.program = multiply.program,
                              .function = "meetings_begin",
                              .arguments = {meetings},
                              .global = {size(launch.tiles), 1, 1},
                              .once = true});
  }
  stages.emplace_back(std::move(multiply));
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), taken.workspace);
}

}  // namespace concord::opencl
