// The gradient of a convolution of 3x3 by its weights, by Winograd's F(3x3, 4x4) (arXiv:1509.09308, section 4.1): tiles
// of 4x4 slopes of the results and of 6x6 pixels go to their values at 36 points, these are multiplied as 36 products
// over the tiles of all images, and what comes out goes to kernels of 3x3. Each slice of the tiles leaves products of
// its own; the last launch adds them up.
#include <algorithm>

#include "concord/opencl/conv/winograd.hpp"
#include "concord/opencl/gemm/gemm.hpp"

namespace concord::opencl {
namespace {

/// The slices, and where in the workspace the points of pixels, the products and what follows begin; those of the
/// slopes are first.
struct WeightsPlan {
  WinogradTiles tiles;
  std::vector<WinogradSlice> slices;
  std::size_t pixels, products, a_product, end;  // bytes
};

WeightsPlan plan_of(const Context& context, const ops::ConvSizes& s) {
  const WinogradTiles tiles{s.n, s.oh, s.ow};
  WeightsPlan plan{tiles, winograd_slices(context, tiles, s.c + s.o), 0, 0, winograd_bytes(s.c * s.o), 0};
  const std::int64_t pitch = plan.slices.front().pitch;
  plan.pixels = winograd_bytes(s.o * pitch);
  plan.products = plan.pixels + winograd_bytes(s.c * pitch);
  plan.end = plan.products + plan.slices.size() * plan.a_product;
  return plan;
}

Gemm product_of(const ops::ConvSizes& s, const WeightsPlan& plan, std::size_t number) {
  const WinogradSlice& slice = plan.slices[number];
  Gemm gemm;
  gemm.m = s.o;
  gemm.n = s.c;
  gemm.k = slice.pitch;
  gemm.batch = kWinogradPoints;
  gemm.a = {workspace(), winograd_point_stride(gemm.m * gemm.k), gemm.k, 1};
  gemm.b = {workspace(plan.pixels), winograd_point_stride(gemm.n * gemm.k), 1, gemm.k, true};
  gemm.b.elements = gemm.batch * gemm.b.batch;
  gemm.c = {workspace(plan.products + number * plan.a_product), winograd_point_stride(gemm.m * gemm.n), gemm.n};
  gemm.largest = gemm.batch * std::max({gemm.a.batch, gemm.b.batch, gemm.c.batch});
  gemm.before_bytes = plan.end;
  return gemm;
}

Stage kernels_stage(Context& context, const ops::ConvSizes& s, const WeightsPlan& plan) {
  const std::int64_t kernels = s.c * s.o;
  return winograd_stage(
      context, context.program("conv/winograd.cl", {"INDEX=int"}), "winograd_kernels",
      {workspace(plan.products), output(0), static_cast<std::uint32_t>(winograd_point_stride(kernels)),
       static_cast<std::uint32_t>(kernels), static_cast<std::uint32_t>(plan.slices.size())},
      kernels, 1);
}

}  // namespace

WinogradWork winograd_weights_work(const Context& context, const ops::ConvSizes& s) {
  const WeightsPlan plan = plan_of(context, s);
  WinogradWork work{{}, std::ssize(plan.slices) * kWinogradPoints * s.c * s.o};
  work.transformed += s.n * (s.c * s.src_plane() + s.o * s.dst_plane());
  for (std::size_t i = 0; i < plan.slices.size(); ++i) {
    work.products.push_back(product_of(s, plan, i));
    work.transformed += kWinogradPoints * (s.c + s.o) * plan.slices[i].pitch;
  }
  return work;
}

std::unique_ptr<Kernel> prepare_winograd_weights(Context& context, const ops::ConvSizes& s, std::string_view label) {
  const WeightsPlan plan = plan_of(context, s);
  const ops::Spatial& padding = s.options.padding;
  const WinogradImage slopes{input(1), s.o, s.oh, s.ow, 0, 0},
      pixels{input(0), s.c, s.h, s.w, -padding[1], -padding[2]};
  std::vector<StagedKernel::AnyStage> stages;
  std::size_t bytes = plan.end;
  std::string name;
  for (std::size_t i = 0; i < plan.slices.size(); ++i) {
    const WinogradSlice& slice = plan.slices[i];
    const std::unique_ptr<Kernel> product = prepare_gemm(context, product_of(s, plan, i), label);
    const auto& multiply = dynamic_cast<const StagedKernel&>(*product).stages();
    stages.emplace_back(winograd_points_stage(context, "winograd_slopes", slopes, plan.tiles, slice, workspace()));
    stages.emplace_back(
        winograd_points_stage(context, "winograd_pixels", pixels, plan.tiles, slice, workspace(plan.pixels)));
    stages.insert(stages.end(), multiply.begin(), multiply.end());
    bytes = std::max(bytes, product->workspace());
    if (name.empty()) name = winograd_name(*product, plan.slices.size());
  }
  stages.emplace_back(kernels_stage(context, s, plan));
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), bytes);
}

}  // namespace concord::opencl
