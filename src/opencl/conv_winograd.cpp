// Winograd's F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308):
// weights and tiles of 6x6 pixels go to their values at 36 points (cl_kernels/winograd.h), these are multiplied as 36
// products over the channels, and what comes out goes to tiles of 4x4 results. The data gradient is the same
// convolution with the weights rotated and transposed. What stands between the transforms lies in the workspace, a
// slice of the tiles at a time where it is much.
#include "concord/opencl/conv_winograd.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/device_limits.hpp"
#include "concord/opencl/gemm_tiled.hpp"
#include "concord/opencl/matrix_units.hpp"
#include "concord/opencl/source.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kTile = 4, kPlanes = 36;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }
std::size_t float_bytes(std::int64_t elements) { return (size(elements) * sizeof(float) + 255) / 256 * 256; }

/// A pass as a convolution of its own: image (n, k, rows, columns) with weights to result (n, m, to_rows, to_columns).
struct Pass {
  std::int64_t n, k, rows, columns, m, to_rows, to_columns, padding_rows, padding_columns;
  bool is_rotated;  // weights (k, m, 3, 3) from the last tap to the first, else (m, k, 3, 3)

  [[nodiscard]] std::int64_t line_tiles() const { return divide_up(to_columns, kTile); }
  [[nodiscard]] std::int64_t image_tiles() const { return line_tiles() * divide_up(to_rows, kTile); }
  [[nodiscard]] std::int64_t tiles() const { return n * image_tiles(); }
};

Pass forward_pass(const ops::ConvSizes& s) {
  return {s.n, s.c, s.h, s.w, s.o, s.oh, s.ow, s.options.padding[1], s.options.padding[2], false};
}

Pass backward_data_pass(const ops::ConvSizes& s) {
  return {s.n, s.o, s.oh, s.ow, s.c, s.h, s.w, 2 - s.options.padding[1], 2 - s.options.padding[2], true};
}

/// Tiles that are computed together, of which there are `count` from `first` on; planes are `pitch` wide.
struct Slice {
  std::int64_t first, count, pitch;
};

/// How the tiles are cut, and where in the workspace U, V and M begin and end.
struct Plan {
  std::vector<Slice> slices;
  std::size_t pixels_begin, products_begin, end;
};

/// Bytes that V and M may take: the more, the fewer launches; no more than a part of what a device can hold in one
/// piece.
std::int64_t most_bytes(const Context& context) {
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
  const auto allocation = std::min<std::uint64_t>(context.device().get_info<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE),
                                                  device_limits().allocation);
  return static_cast<std::int64_t>(std::min(kMost, allocation / 4));
}

Plan plan_of(const Context& context, const Pass& pass) {
  constexpr std::int64_t kUnit = 128;  // a multiple of the width of most products' tiles
  const std::int64_t a_tile = kPlanes * (pass.k + pass.m) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = std::max(most_bytes(context) / a_tile / kUnit * kUnit, kUnit), tiles = pass.tiles();
  const std::int64_t wanted = divide_up(tiles, divide_up(tiles, most));
  const std::int64_t count = wanted == tiles ? tiles : divide_up(wanted, kUnit) * kUnit;
  const std::int64_t pitch = divide_up(count, 4) * 4;  // so that products read four numbers at once
  Plan plan;
  for (std::int64_t first = 0; first < tiles; first += count) {
    const std::int64_t left = std::min(count, tiles - first);
    plan.slices.push_back({first, left, divide_up(left, 4) * 4});
  }
  plan.pixels_begin = float_bytes(kPlanes * pass.k * pass.m);
  plan.products_begin = plan.pixels_begin + float_bytes(kPlanes * pass.k * pitch);
  plan.end = plan.products_begin + float_bytes(kPlanes * pass.m * pitch);
  return plan;
}

class Arguments {
 public:
  explicit Arguments(std::vector<Argument> list) : list_(std::move(list)) {}
  Arguments& count(std::int64_t value) {
    list_.emplace_back(static_cast<std::uint32_t>(value));
    return *this;
  }
  Arguments& number(std::int64_t value) {
    list_.emplace_back(static_cast<std::int32_t>(value));
    return *this;
  }
  Arguments& divisor(std::int64_t value) {
    const FastDivisor d = fast_divisor(value);
    for (const std::uint32_t number : {d.divisor, d.multiplier, d.shift}) list_.emplace_back(number);
    return *this;
  }
  Arguments& tiles(const Pass& pass, const Slice& slice) {
    return count(slice.first)
        .count(slice.count)
        .count(slice.pitch)
        .divisor(pass.image_tiles())
        .divisor(pass.line_tiles());
  }
  Arguments& add(const std::vector<Argument>& more) {
    list_.insert(list_.end(), more.begin(), more.end());
    return *this;
  }
  [[nodiscard]] std::vector<Argument> take() { return std::move(list_); }

 private:
  std::vector<Argument> list_;
};

/// `items` neighbours in work-groups, and `others` beside them.
Stage stage_of(const Context& context, PendingProgram program, std::string function, std::vector<Argument> arguments,
               std::int64_t items, std::int64_t others) {
  const std::size_t width = std::min<std::size_t>(64, context.limits().max_work_group);
  return {std::move(program),
          std::move(function),
          std::move(arguments),
          {(size(items) + width - 1) / width * width, size(others), 1},
          {width, 1, 1}};
}

Stage weights_stage(Context& context, const Pass& pass) {
  constexpr std::int64_t kTaps = 9;
  Arguments list({input(1), workspace()});
  list.count(pass.m).count(pass.k);
  list.count(pass.is_rotated ? kTaps : kTaps * pass.k).count(pass.is_rotated ? kTaps * pass.m : kTaps);
  std::vector<std::string> definitions{"INDEX=int"};
  if (pass.is_rotated) definitions.emplace_back("ROTATED");
  return stage_of(context, context.program("winograd.cl", definitions), "winograd_weights", list.take(), pass.m,
                  pass.k);
}

Stage pixels_stage(Context& context, const Pass& pass, const Plan& plan, const Slice& slice) {
  Arguments list({input(0), workspace(plan.pixels_begin)});
  list.count(pass.k).tiles(pass, slice);
  list.number(pass.rows).number(pass.columns).number(-pass.padding_rows).number(-pass.padding_columns);
  return stage_of(context, context.program("winograd.cl", {"INDEX=int"}), "winograd_pixels", list.take(), slice.pitch,
                  pass.k);
}

Gemm product_of(const Pass& pass, const Plan& plan, const Slice& slice) {
  Gemm gemm;
  gemm.m = pass.m;
  gemm.n = slice.pitch;
  gemm.k = pass.k;
  gemm.batch = kPlanes;
  gemm.a = {workspace(), pass.k * pass.m, 1, pass.m};
  gemm.b = {workspace(plan.pixels_begin), pass.k * slice.pitch, slice.pitch};
  gemm.b.elements = kPlanes * pass.k * slice.pitch;
  gemm.c = {workspace(plan.products_begin), pass.m * slice.pitch, slice.pitch};
  gemm.largest = kPlanes * std::max({pass.k * pass.m, pass.k * slice.pitch, pass.m * slice.pitch});
  gemm.before_bytes = plan.end;
  return gemm;
}

Stage results_stage(Context& context, const Pass& pass, const Plan& plan, const Slice& slice,
                    const EpilogueText& epilogue) {
  const std::int64_t plane = pass.to_rows * pass.to_columns;
  Gemm result;
  result.c = {output(0), 0, plane, plane, pass.m * plane};
  result.largest = pass.n * pass.m * plane;
  Arguments list({workspace(plan.products_begin)});
  list.count(pass.m).tiles(pass, slice).count(pass.to_rows).count(pass.to_columns);
  list.add(gemm_result_arguments(result)).add(epilogue.arguments);
  const PendingProgram program =
      context.program_from(epilogue.text + kernel_source("winograd.cl"),
                           {gemm_index_definition(result), pass.to_columns % 4 == 0 ? "C_VECTOR=4" : "C_VECTOR=1"});
  return stage_of(context, program, "winograd_results", list.take(), slice.count, pass.m);
}

std::unique_ptr<Kernel> prepare_pass(Context& context, const Pass& pass, std::string_view label,
                                     const EpilogueText& epilogue) {
  const Plan plan = plan_of(context, pass);
  std::vector<StagedKernel::AnyStage> stages{weights_stage(context, pass)};
  std::size_t bytes = plan.end;
  std::string name;
  for (const Slice& slice : plan.slices) {
    const std::unique_ptr<Kernel> product = prepare_gemm(context, product_of(pass, plan, slice), label);
    const auto& multiply = dynamic_cast<const StagedKernel&>(*product).stages();
    stages.emplace_back(pixels_stage(context, pass, plan, slice));
    stages.insert(stages.end(), multiply.begin(), multiply.end());
    stages.emplace_back(results_stage(context, pass, plan, slice, epilogue));
    bytes = std::max(bytes, product->workspace());
    if (name.empty()) name = product->name() + ", winograd";
  }
  if (plan.slices.size() > 1) name += fmt::format(" in {}", plan.slices.size());
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), bytes);
}

/// What the transforms read and write, without the results, which every way writes.
double transform_bytes(const Pass& pass, const Plan& plan) {
  const auto elements = [](std::int64_t value) { return static_cast<double>(value); };
  double total = elements((kPlanes + 9) * pass.k * pass.m) + elements(pass.n * pass.k * pass.rows * pass.columns);
  for (const Slice& slice : plan.slices) total += elements(kPlanes * (pass.k + pass.m) * slice.pitch);
  return total * sizeof(float);
}

double product_bytes(const Gemm& gemm) {
  return static_cast<double>(gemm.batch * (gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n)) * sizeof(float);
}

/// By the rates of PoCL on two cores with AVX-512. What `direct` gathers costs as much as so many multiplications.
bool pays_on_cpu(const Context& context, const Pass& pass, const Gemm& direct) {
  constexpr double kProductsASecond = 2e10, kUnitBytesASecond = 3.5e9, kGathered = 40;
  constexpr double kLaunchesSeconds = 1e-4;  // of all units together: three launches in place of one
  const Plan plan = plan_of(context, pass);
  double products = 0, bytes = transform_bytes(pass, plan);
  for (const Slice& slice : plan.slices) {
    const Gemm gemm = product_of(pass, plan, slice);
    products += static_cast<double>(gemm.batch * gemm.m * gemm.n) * static_cast<double>(gemm.k);
    bytes += product_bytes(gemm);
  }
  const double gathered = static_cast<double>(direct.n) * static_cast<double>(direct.k);
  const double direct_products = gathered * (static_cast<double>(direct.m) + kGathered);
  return kLaunchesSeconds + products / kProductsASecond + bytes / kUnitBytesASecond <
         direct_products / kProductsASecond;
}

bool pays_on_gpu(const Context& context, const Pass& pass, const Gemm& direct) {
  constexpr double kRate = kBytesASecond / 2;  // of other GPUs memory is slower than their arithmetic
  const Plan plan = plan_of(context, pass);
  double seconds = transform_bytes(pass, plan) / kRate + kLaunchSeconds;
  for (const Slice& slice : plan.slices) {
    const Gemm gemm = product_of(pass, plan, slice);
    seconds += std::max(tiled_seconds(context, gemm), product_bytes(gemm) / kRate) + 2 * kLaunchSeconds;
  }
  return seconds < tiled_seconds(context, direct);
}

}  // namespace

bool conv_winograd_serves(const ops::ConvSizes& s, Precision precision) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const ops::ConvOptions& o = s.options;
  if (precision != Precision::fp32 || s.kh != 3 || s.kw != 3 || s.kd * s.d * s.od != 1 || o.padding[0] != 0)
    return false;
  if (o.stride != ops::Spatial{1, 1, 1} || o.dilation != ops::Spatial{1, 1, 1} || o.groups != 1) return false;
  // Results of padding alone are 0, which transforms would round.
  for (const std::size_t axis : {1, 2}) {
    if (std::max(o.padding[axis], o.padding_after[axis]) > 2) return false;
  }
  // What indices of 32 bits count: weights at their points, tiles, and the pixels of a channel.
  return kPlanes * s.c * s.o < kMost && s.n * std::max(s.src_plane(), s.dst_plane()) < kMost;
}

bool conv_winograd_pays(Context& context, const ops::ConvSizes& s, const Gemm& direct) {
  const bool is_cpu = context.limits().is_cpu;
  // Matrix units are faster than a quarter of the products in plain OpenCL C.
  if (planned_implementation(context, direct).name != (is_cpu ? "panel" : "tiled")) return false;
  const Pass pass = direct.m == s.o ? forward_pass(s) : backward_data_pass(s);
  return is_cpu ? pays_on_cpu(context, pass, direct) : pays_on_gpu(context, pass, direct);
}

std::unique_ptr<Kernel> conv_forward_winograd(Context& context, const ops::ConvSizes& sizes, std::string_view label,
                                              const EpilogueText& epilogue) {
  return prepare_pass(context, forward_pass(sizes), label, epilogue);
}

std::unique_ptr<Kernel> conv_backward_data_winograd(Context& context, const ops::ConvSizes& sizes,
                                                    std::string_view label, const EpilogueText& epilogue) {
  return prepare_pass(context, backward_data_pass(sizes), label, epilogue);
}

}  // namespace concord::opencl
