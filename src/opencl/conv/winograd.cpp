// Winograd's F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308):
// weights and tiles of 6x6 pixels go to their values at 36 points (cl_kernels/conv/winograd.h), these are multiplied as
// 36 products over the channels, and what comes out goes to tiles of 4x4 results. The data gradient is the same
// convolution with the weights rotated and transposed. What stands between the transforms lies in the workspace, a
// slice of the tiles at a time where it is much.
#include "concord/opencl/conv/winograd.hpp"

#include <algorithm>

#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// A pass as a convolution of its own: image (n, k, rows, columns) with weights to results of m channels.
struct Pass {
  WinogradImage image;
  WinogradTiles results;
  std::int64_t m;
  bool is_rotated;  // weights (k, m, 3, 3) from the last tap to the first, else (m, k, 3, 3)
  [[nodiscard]] std::int64_t k() const { return image.channels; }
};

Pass forward_pass(const ops::ConvSizes& s) {
  const ops::Spatial& padding = s.options.padding;
  return {{input(0), s.c, s.h, s.w, -padding[1], -padding[2]}, {s.n, s.oh, s.ow}, s.o, false};
}

Pass backward_data_pass(const ops::ConvSizes& s) {
  const ops::Spatial& padding = s.options.padding;
  return {{input(0), s.o, s.oh, s.ow, padding[1] - 2, padding[2] - 2}, {s.n, s.h, s.w}, s.c, true};
}

Pass pass_of(const ops::ConvSizes& s, ConvPass pass) {
  return pass == ConvPass::forward ? forward_pass(s) : backward_data_pass(s);
}

/// The slices, and where in the workspace the points of pixels, the products and what follows begin; those of the
/// weights are first.
struct Plan {
  std::vector<WinogradSlice> slices;
  std::size_t pixels, products, end;
};

Plan plan_of(const Context& context, const Pass& pass) {
  Plan plan{winograd_slices(context, pass.results, pass.k() + pass.m), 0, 0, 0};
  const std::int64_t pitch = plan.slices.front().pitch;
  plan.pixels = winograd_bytes(pass.k() * pass.m);
  plan.products = plan.pixels + winograd_bytes(pass.k() * pitch);
  plan.end = plan.products + winograd_bytes(pass.m * pitch);
  return plan;
}

Stage weights_stage(Context& context, const Pass& pass) {
  const std::int64_t kernels = pass.m * pass.k();
  std::vector<std::string> definitions{"INDEX=int"};
  if (pass.is_rotated) definitions.emplace_back("ROTATED");
  return winograd_stage(context, context.program("conv/winograd.cl", definitions), "winograd_weights",
                        {input(1), workspace(), static_cast<std::uint32_t>(winograd_point_stride(kernels)),
                         static_cast<std::uint32_t>(kernels)},
                        kernels, 1);
}

Gemm product_of(const Pass& pass, const Plan& plan, const WinogradSlice& slice) {
  Gemm gemm;
  gemm.m = pass.m;
  gemm.n = slice.pitch;
  gemm.k = pass.k();
  gemm.batch = kWinogradPoints;
  gemm.a = {workspace(), winograd_point_stride(gemm.k * gemm.m), gemm.k, 1};
  if (pass.is_rotated) gemm.a = {workspace(), winograd_point_stride(gemm.k * gemm.m), 1, gemm.m};
  gemm.b = {workspace(plan.pixels), winograd_point_stride(gemm.k * gemm.n), gemm.n};
  gemm.b.elements = gemm.batch * gemm.b.batch;
  gemm.c = {workspace(plan.products), winograd_point_stride(gemm.m * gemm.n), gemm.n};
  gemm.largest = gemm.batch * std::max({gemm.a.batch, gemm.b.batch, gemm.c.batch});
  gemm.before_bytes = plan.end;
  return gemm;
}

Stage results_stage(Context& context, const Pass& pass, const Plan& plan, const WinogradSlice& slice,
                    const EpilogueText& epilogue) {
  const WinogradTiles& tiles = pass.results;
  const std::int64_t plane = tiles.rows * tiles.columns;
  Gemm result;
  result.c = {output(0), 0, plane, plane, pass.m * plane};
  result.largest = tiles.n * pass.m * plane;
  std::vector<Argument> packed{workspace(plan.products),
                               static_cast<std::uint32_t>(winograd_point_stride(pass.m * slice.pitch))};
  add_winograd_tiles(packed, tiles, slice);
  for (const std::int64_t value : {tiles.rows, tiles.columns}) packed.emplace_back(static_cast<std::uint32_t>(value));
  const std::vector<Argument> place = gemm_result_arguments(result);
  packed.insert(packed.end(), place.begin(), place.end());
  std::vector<Argument> arguments{PackedArguments{std::move(packed)}};
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  const PendingProgram program =
      context.program_from(epilogue.text + kernel_source("conv/winograd.cl"),
                           {gemm_index_definition(result), tiles.columns % 4 == 0 ? "C_VECTOR=4" : "C_VECTOR=1"});
  return winograd_stage(context, program, "winograd_results", std::move(arguments), slice.count, pass.m);
}

WinogradWork work_of(const Context& context, const Pass& pass) {
  constexpr std::int64_t kTaps = 9;
  const Plan plan = plan_of(context, pass);
  WinogradWork work{{}, (kTaps + kWinogradPoints) * pass.m * pass.k()};
  work.transformed += pass.results.n * pass.k() * pass.image.rows * pass.image.columns;
  for (const WinogradSlice& slice : plan.slices) {
    work.products.push_back(product_of(pass, plan, slice));
    work.transformed += kWinogradPoints * (pass.k() + pass.m) * slice.pitch;
  }
  return work;
}

std::unique_ptr<Kernel> prepare_pass(Context& context, const Pass& pass, std::string_view label,
                                     const EpilogueText& epilogue) {
  const Plan plan = plan_of(context, pass);
  std::vector<StagedKernel::AnyStage> stages{weights_stage(context, pass)};
  std::size_t bytes = plan.end;
  std::string name;
  for (const WinogradSlice& slice : plan.slices) {
    const std::unique_ptr<Kernel> product = prepare_gemm(context, product_of(pass, plan, slice), label);
    const auto& multiply = dynamic_cast<const StagedKernel&>(*product).stages();
    stages.emplace_back(
        winograd_points_stage(context, "winograd_pixels", pass.image, pass.results, slice, workspace(plan.pixels)));
    stages.insert(stages.end(), multiply.begin(), multiply.end());
    stages.emplace_back(results_stage(context, pass, plan, slice, epilogue));
    bytes = std::max(bytes, product->workspace());
    if (name.empty()) name = winograd_name(*product, plan.slices.size());
  }
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), bytes);
}

std::unique_ptr<Kernel> winograd_kernel(Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  if (problem.pass == ConvPass::backward_weights) return prepare_winograd_weights(context, s, problem.label);
  return prepare_pass(context, pass_of(s, problem.pass), problem.label, conv_epilogue(problem));
}

}  // namespace

std::string_view conv_winograd_refusal(const ops::ConvSizes& s, Precision precision) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const ops::ConvOptions& o = s.options;
  if (precision != Precision::fp32) return "it computes in fp32";
  if (s.kd * s.d * s.od != 1 || o.padding[0] != 0) return kNotAnImage;
  if (s.kh != 3 || s.kw != 3) return "the kernel is not 3 x 3";
  if (o.stride != ops::Spatial{1, 1, 1}) return "it is strided";
  if (o.dilation != ops::Spatial{1, 1, 1}) return "it is dilated";
  if (o.groups != 1) return "it has groups";
  // Results of padding alone are 0, which transforms would round.
  for (const std::size_t axis : {1, 2}) {
    if (std::max(o.padding[axis], o.padding_after[axis]) > 2) return "windows lie in the padding alone";
  }
  if (std::max(s.c, s.o) > kMostGroups) return "it has more than 65535 channels";
  // What indices of 32 bits count: weights at their points, tiles, and the pixels of a channel.
  const bool is_indexed = kWinogradPoints * s.c * s.o < kMost && s.n * std::max(s.src_plane(), s.dst_plane()) < kMost;
  return is_indexed ? kNoRefusal : "it counts more than 2^31 weights or pixels";
}

double conv_winograd_seconds(Context& context, const ops::ConvSizes& s, ConvPass pass) {
  return winograd_seconds(context, pass == ConvPass::backward_weights ? winograd_weights_work(context, s)
                                                                      : work_of(context, pass_of(s, pass)));
}

extern const ConvImplementation kWinogradConv{
    .name = "winograd",
    .alternative = alternative::kWinograd,
    .refusal =
        [](const Context&, const ConvProblem& problem) {
          return conv_winograd_refusal(problem.sizes, problem.request.precision);
        },
    .seconds = [](Context& context,
                  const ConvProblem& problem) { return conv_winograd_seconds(context, problem.sizes, problem.pass); },
    .prepare = [](Context& context,
                  const ConvProblem& problem) { return prepared(problem.request, winograd_kernel(context, problem)); }};

}  // namespace concord::opencl
