// Convolutions of 3x3 by Winograd's transforms: every geometry against plain loops in double precision, at magnitudes
// that are equal, small, large and mixed; epilogues; slices of the workspace; and who takes them.
#include "concord/opencl/conv/winograd.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/device/kernel_alternatives.hpp"
#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/device.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr const char* kWinograd = "convolution winograd";

struct Geometry {
  Shape src;
  std::int64_t outputs;
  Conv2dOptions options;
  [[nodiscard]] Shape weights() const { return {outputs, src[1], 3, 3}; }
  [[nodiscard]] ops::ConvSizes sizes() const { return ops::conv_sizes(src, weights(), options); }
  [[nodiscard]] Shape dst() const { return {src[0], outputs, sizes().oh, sizes().ow}; }
  [[nodiscard]] std::string str() const { return fmt::format("{} * {} {}", src.str(), weights().str(), options.str()); }
};

/// A tile and less, odd sizes, every padding; few enough for Oclgrind.
std::vector<Geometry> small_geometries() {
  std::vector<Geometry> list;
  for (const std::int64_t padding : {0, 1, 2}) {
    const Conv2dOptions options{.padding = {padding, padding}};
    list.push_back({{1, 1, 3, 3}, 1, options});
    list.push_back({{2, 3, 4, 9}, 2, options});
    list.push_back({{3, 2, 7, 5}, 3, options});
  }
  list.push_back({{2, 3, 6, 7}, 2, {.padding = {1, 0}, .padding_after = {{0, 2}}}});
  return list;
}

std::vector<Geometry> geometries() {
  std::vector<Geometry> list = small_geometries();
  for (const std::int64_t padding : {0, 1, 2}) {
    const Conv2dOptions options{.padding = {padding, padding}};
    list.push_back({{3, 5, 11, 7}, 6, options});
    list.push_back({{2, 40, 8, 8}, 36, options});
    list.push_back({{1, 17, 13, 16}, 40, options});
  }
  return list;
}

struct Passes {
  Array dst, diff_src, diff_weights;
};

/// Σ of products over all windows: dst, and the gradients for diff_dst.
Passes loops(const Geometry& g, const Array& src, const Array& weights, const Array& diff_dst) {
  const ops::ConvSizes s = g.sizes();
  Passes result{Array(g.dst()), Array(g.src), Array(g.weights())};
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t o = 0; o < s.o; ++o) {
      for (std::int64_t c = 0; c < s.c; ++c) {
        for (std::int64_t i = 0; i < s.oh * s.ow * 9; ++i) {
          const std::int64_t y = i / 9 / s.ow, x = i / 9 % s.ow, ky = i % 9 / 3, kx = i % 3;
          const std::int64_t from_y = y + ky - s.options.padding[1], from_x = x + kx - s.options.padding[2];
          if (from_y < 0 || from_y >= s.h || from_x < 0 || from_x >= s.w) continue;
          const double pixel = src.at({n, c, from_y, from_x}), weight = weights.at({o, c, ky, kx});
          const double slope = diff_dst.at({n, o, y, x});
          result.dst.at({n, o, y, x}) += pixel * weight;
          result.diff_src.at({n, c, from_y, from_x}) += slope * weight;
          result.diff_weights.at({o, c, ky, kx}) += slope * pixel;
        }
      }
    }
  }
  return result;
}

/// Each pixel by the largest magnitude within 6 of it: of what shares a tile with it or with its neighbours.
Array spread(const Array& image) {
  Array result(image.shape);
  const std::int64_t h = image.shape[2], w = image.shape[3];
  for (std::int64_t i = 0; i < image.shape.elements(); ++i) {
    const std::int64_t plane = i / (h * w), y = i / w % h, x = i % w;
    double& most = result.values[static_cast<std::size_t>(i)];
    for (std::int64_t v = std::max<std::int64_t>(0, y - 6); v < std::min(h, y + 7); ++v) {
      for (std::int64_t u = std::max<std::int64_t>(0, x - 6); u < std::min(w, x + 7); ++u) {
        most = std::max(most, std::abs(image.values[static_cast<std::size_t>((plane * h + v) * w + u)]));
      }
    }
  }
  return result;
}

/// What errors are measured by: the sums of the magnitudes of all products, of pixels by the largest of their tiles.
Passes magnitudes(const Geometry& g, const Array& src, const Array& weights, const Array& diff_dst) {
  const ops::ConvSizes s = g.sizes();
  const Array pixels = spread(src), slopes = spread(diff_dst);
  Passes result{Array(g.dst()), Array(g.src), Array(g.weights())};
  const auto inside = [](std::int64_t i, std::int64_t size) { return std::clamp<std::int64_t>(i, 0, size - 1); };
  for (std::int64_t o = 0; o < s.o; ++o) {
    for (std::int64_t c = 0; c < s.c; ++c) {
      double kernel = 0, products = 0;
      for (std::int64_t tap = 0; tap < 9; ++tap) kernel += std::abs(weights.at({o, c, tap / 3, tap % 3}));
      for (std::int64_t n = 0; n < s.n; ++n) {
        for (std::int64_t i = 0; i < s.dst_plane(); ++i) {
          const std::int64_t y = i / s.ow, x = i % s.ow;
          const double pixel =
              pixels.at({n, c, inside(y + 1 - s.options.padding[1], s.h), inside(x + 1 - s.options.padding[2], s.w)});
          result.dst.at({n, o, y, x}) += pixel * kernel;
          products += pixel * slopes.at({n, o, y, x});
        }
        for (std::int64_t i = 0; i < s.src_plane(); ++i) {
          const std::int64_t y = i / s.w, x = i % s.w;
          result.diff_src.at({n, c, y, x}) += kernel * slopes.at({n, o, inside(y - 1 + s.options.padding[1], s.oh),
                                                                  inside(x - 1 + s.options.padding[2], s.ow)});
        }
      }
      for (std::int64_t tap = 0; tap < 9; ++tap) result.diff_weights.at({o, c, tap / 3, tap % 3}) = products;
    }
  }
  return result;
}

/// The largest error in units of 2^-24 of `bound`.
double error_of(const Tensor& got, const Array& expected, const Array& bound) {
  REQUIRE(got.shape() == expected.shape);
  double worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double error = std::abs(static_cast<double>(got.values<float>()[i]) - expected.values[i]);
    if (error != 0) worst = std::max(worst, error / bound.values[i] * 0x1p24);
    if (std::isnan(error)) return error;
  }
  return worst;
}

Array ones(const Shape& shape) { return {shape, std::vector<double>(static_cast<std::size_t>(shape.elements()), 1.0)}; }

/// `factor` · 10^[-decades, decades] · N(0, 1).
Array mixed(const Shape& shape, std::uint32_t seed, double factor, double decades) {
  Array numbers = normal(shape, seed);
  const Array exponents = uniform(shape, seed + 100, -decades, decades);
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    numbers.values[i] =
        static_cast<double>(static_cast<float>(numbers.values[i] * factor * std::pow(10.0, exponents.values[i])));
  }
  return numbers;
}

/// dst and its gradients for the slopes x[2].
std::vector<Value> passes(const std::vector<Value>& x, const Conv2dOptions& options) {
  const Value dst = conv2d(x[0], x[1], options);
  std::vector<Value> results{dst};
  for (const Value& slope : gradient(sum(dst * x[2]), std::vector{x[0], x[1]})) results.push_back(slope);
  return results;
}

/// The kernels of the three passes. The operands are assigned, else they would be computed but once, untraced.
std::vector<std::string> kernels_of(const DevicePtr& device, const Geometry& g, Precision precision = Precision::fp32) {
  Graph graph;
  std::vector<Value> x;
  for (const Shape& shape : {g.src, g.weights(), g.dst()}) {
    x.push_back(operand(graph, x.size(), Tensor(DType::f32, shape)));
    graph.assign(x.back(), x.back() + 1.0F);
  }
  Program program =
      compile(graph, passes(x, g.options), std::make_shared<Variables>(device, 7), {.precision = precision});
  std::vector<std::string> names;
  for (const TraceEntry& entry : program.run_traced()) {
    if (entry.op.starts_with("conv2d")) names.push_back(entry.kernel);
  }
  REQUIRE(names.size() == 3);
  return names;
}

// Of the transforms' rounding a tile's largest numbers decide; the worst that was found is 10.
constexpr double kWorst = 24;

void check_passes(const DevicePtr& device, const Geometry& g, double factor, double decades) {
  const Array src = mixed(g.src, 1, factor, decades), weights = mixed(g.weights(), 2, factor, decades);
  const Array diff_dst = mixed(g.dst(), 3, factor, decades);
  const Passes expected = loops(g, src, weights, diff_dst);
  const Passes bound = magnitudes(g, src, weights, diff_dst);
  const std::vector<Tensor> got =
      run(device, {{src}, {weights}, {diff_dst}}, [&](const std::vector<Value>& x) { return passes(x, g.options); });
  INFO(g.str() << ", magnitudes " << factor << " and " << decades << " decades, on " << device->info().id);
  CHECK(error_of(got[0], expected.dst, bound.dst) < kWorst);
  CHECK(error_of(got[1], expected.diff_src, bound.diff_src) < kWorst);
  CHECK(error_of(got[2], expected.diff_weights, bound.diff_weights) < kWorst);
}

}  // namespace

TEST_CASE("convolutions by Winograd's transforms are exact to a few roundings", "[opencl][winograd]") {
  const DebugOption way("conv", "winograd");
  for (const DevicePtr& device : opencl_devices()) {
    for (const Geometry& g : geometries()) check_passes(device, g, 1, 0);
  }
}

TEST_CASE("convolutions of small images by Winograd's transforms", "[opencl][winograd]") {
  const DebugOption way("conv", "winograd");
  for (const DevicePtr& device : opencl_devices()) {
    for (const Geometry& g : small_geometries()) {
      DYNAMIC_SECTION(g.str()) { check_passes(device, g, 1, 0); }
    }
  }
}

TEST_CASE("convolutions by Winograd's transforms keep their precision at any magnitude", "[opencl][winograd]") {
  const DebugOption way("conv", "winograd");
  const Geometry g{{2, 20, 13, 18}, 24, {.padding = {1, 1}}};
  for (const DevicePtr& device : opencl_devices()) {
    for (const double factor : {1e-12, 1.0, 1e12}) {
      for (const double decades : {0.0, 1.0, 3.0}) check_passes(device, g, factor, decades);
    }
  }
}

TEST_CASE("Winograd's transforms apply an epilogue", "[opencl][winograd]") {
  const DebugOption way("conv", "winograd");
  for (const Geometry& g : geometries()) {
    const std::vector<Input> inputs{{normal(g.src, 1)},   {normal(g.weights(), 2)}, {normal({g.outputs, 1, 1}, 3)},
                                    {normal(g.dst(), 4)}, {normal(g.dst(), 5)},     {normal(g.src, 6)}};
    const Build build = [&](const std::vector<Value>& x) {
      const Value dst = relu(conv2d(x[0], x[1], g.options) * 0.5F + x[2]) - x[3];
      const auto backward = std::make_shared<ops::ConvBackwardData>(g.options, g.src);
      return std::vector{dst, x[0].graph().add(backward, {x[4], x[1]}) + x[5]};
    };
    for (const DevicePtr& device : opencl_devices()) {
      INFO(g.str() << " on " << device->info().id);
      const std::vector<Tensor> fused = run(device, inputs, build), plain = run(device, inputs, build, {.fuse = false});
      for (std::size_t i = 0; i < fused.size(); ++i) {
        CHECK(error_of(fused[i], to_array(plain[i]), ones(plain[i].shape())) < 128);
      }
    }
  }
}

TEST_CASE("Winograd's transforms take many tiles in slices", "[opencl][winograd]") {
  const Geometry g{{2, 7, 41, 50}, 9, {.padding = {1, 1}}};
  const DebugOption way("conv", "winograd"), limits("limit.allocation", "1400000");
  for (const DevicePtr& device : opencl_devices()) {
    const DevicePtr small = Device::open(device->info().id);
    for (const std::string& name : kernels_of(small, g)) CHECK_THAT(name, contains(", winograd in 3"));
    check_passes(small, g, 1, 0);
  }
}

TEST_CASE("Winograd's transforms are taken where they are preferred and serve", "[opencl][winograd]") {
  const Geometry plain{{1, 4, 8, 8}, 4, {.padding = {1, 1}}};
  const std::vector<Geometry> others{{{1, 4, 8, 8}, 4, {.stride = {2, 2}, .padding = {1, 1}}},
                                     {{1, 4, 8, 8}, 4, {.padding = {2, 2}, .dilation = {2, 2}}},
                                     {{1, 4, 8, 8}, 4, {.padding = {3, 1}}},
                                     {{1, 4, 8, 8}, 4, {.padding = {1, 1}, .padding_after = {{1, 3}}}}};
  for (const DevicePtr& device : opencl_devices()) {
    const DevicePtr opened = Device::open(device->info().id);
    KernelAlternatives& alternatives = *opened->alternatives();
    for (const std::string& name : kernels_of(opened, plain)) CHECK_THAT(name, !contains("winograd"));
    alternatives.prefer(kWinograd);
    for (const std::string& name : kernels_of(opened, plain)) CHECK_THAT(name, contains("winograd"));
    CHECK(alternatives.uses(kWinograd) == 3);
    for (const Geometry& g : others) {
      for (const std::string& name : kernels_of(opened, g)) CHECK_THAT(name, !contains("winograd"));
    }
    for (const std::string& name : kernels_of(opened, plain, Precision::bf16)) CHECK_THAT(name, !contains("winograd"));
    alternatives.disable(kWinograd, "a test says so");
    for (const std::string& name : kernels_of(opened, plain)) CHECK_THAT(name, !contains("winograd"));
  }
  const Geometry deep{{1, 65536, 4, 4}, 1, {.padding = {1, 1}}};  // more channels than a launch has groups
  CHECK(opencl::conv_winograd_refusal(plain.sizes(), Precision::fp32) == "");
  CHECK(opencl::conv_winograd_refusal(deep.sizes(), Precision::fp32) != "");
  const DebugOption way("conv", "fourier");
  for (const DevicePtr& device : opencl_devices()) {
    CHECK_THROWS_WITH(kernels_of(Device::open(device->info().id), plain),
                      contains("conv is \"fourier\"") && contains("winograd"));
  }
}

// 64 channels each way: on a CPU a third of the time, on a GPU without matrix cores half of it.
TEST_CASE("Winograd's transforms are planned where they save time", "[opencl][winograd]") {
  const ops::ConvSizes large = Geometry{{32, 64, 32, 32}, 64, {.padding = {1, 1}}}.sizes();
  const ops::ConvSizes first = Geometry{{32, 3, 32, 32}, 64, {.padding = {1, 1}}}.sizes();
  for (const DevicePtr& device : opencl_devices()) {
    if (device->info().vendor.find("NVIDIA") != std::string::npos) continue;  // matrix cores are planned there
    opencl::Context& context = context_of(device);
    for (const auto pass :
         {opencl::ConvPass::forward, opencl::ConvPass::backward_data, opencl::ConvPass::backward_weights}) {
      CHECK(opencl::conv_winograd_seconds(context, large, pass) < opencl::conv_gemm_seconds(context, large, pass));
    }
    const auto forward = opencl::ConvPass::forward;
    CHECK(opencl::conv_winograd_seconds(context, first, forward) >= opencl::conv_gemm_seconds(context, first, forward));
  }
}

}  // namespace concord::test
