// The data gradient of strided convolutions by phases: every implementation of a product against plain loops, with an
// epilogue and without; and that nothing is multiplied by the zeros between pixels.
#include "concord/opencl/conv/polyphase.hpp"

#include <fmt/format.h>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Geometry {
  Shape src, weights;
  ops::ConvOptions options;
  [[nodiscard]] ops::ConvSizes sizes() const { return ops::conv_sizes(src, weights, options); }
  [[nodiscard]] Shape dst() const {
    const ops::ConvSizes s = sizes();
    return ops::with_spatial(s.n, s.o, {s.od, s.oh, s.ow}, options.rank);
  }
  [[nodiscard]] std::string str() const { return fmt::format("{} * {} {}", src.str(), weights.str(), options.str()); }
};

Geometry image(Shape src, Shape weights, const Conv2dOptions& o) { return {std::move(src), std::move(weights), o}; }

Array loops(const Geometry& g, const Array& diff_dst, const Array& weights) {
  const ops::ConvSizes s = g.sizes();
  const ops::Spatial &stride = s.options.stride, &padding = s.options.padding, &dilation = s.options.dilation;
  Array diff_src(g.src);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < s.n * s.o * s.dst_plane(); ++i) {
    const std::int64_t n = i / s.dst_plane() / s.o, o = i / s.dst_plane() % s.o, place = i % s.dst_plane();
    const ops::Spatial from{place / (s.oh * s.ow), place / s.ow % s.oh, place % s.ow};
    for (std::int64_t j = 0; j < s.group_c() * s.taps(); ++j) {
      const std::int64_t c = j / s.taps(), tap = j % s.taps();
      const ops::Spatial kernel{tap / (s.kh * s.kw), tap / s.kw % s.kh, tap % s.kw}, size{s.d, s.h, s.w};
      bool inside = true;
      std::int64_t to = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t x = from[axis] * stride[axis] - padding[axis] + kernel[axis] * dilation[axis];
        inside = inside && x >= 0 && x < size[axis];
        to = to * size[axis] + x;
      }
      if (!inside) continue;
      const std::int64_t channel = n * s.c + o / s.group_o() * s.group_c() + c;
      diff_src.values[at(channel * s.src_plane() + to)] +=
          diff_dst.values[at(i)] * weights.values[at((o * s.group_c() + c) * s.taps() + tap)];
    }
  }
  return diff_src;
}

std::vector<std::string> implementations_of(const Device& device) {
  std::vector<std::string> names{"reference", "tiled", "panel"};
  if (device.info().vendor.find("NVIDIA") != std::string::npos) names.insert(names.end(), {"mma", "wgmma"});
  return names;
}

Value data_gradient(const Geometry& g, const std::vector<Value>& x) {
  return x[0].graph().add(std::make_shared<ops::ConvBackwardData>(g.options, g.src), {x[0], x[1]});
}

/// By phases, with every implementation that the device has.
void check_phases(const Geometry& g) {
  const Array diff_dst = integers(g.dst(), 1), weights = integers(g.weights, 2);
  const std::vector<double> expected = loops(g, diff_dst, weights).values;
  const DebugOption phases("conv", "phases");
  for (const DevicePtr& device : opencl_devices()) {
    for (const std::string& name : implementations_of(*device)) {
      const DebugOption setting("gemm", name);
      const std::vector<Tensor> results = run(device, {{diff_dst}, {weights}}, [&](const std::vector<Value>& x) {
        return std::vector{data_gradient(g, x)};
      });
      INFO(g.str() << " by " << name << " on " << device->info().id);
      CHECK(to_array(results[0]).values == expected);
    }
  }
}

std::vector<Geometry> images() {
  std::vector<Geometry> list;
  for (const std::int64_t stride : {2, 3, 4}) {
    for (const std::int64_t kernel : {1, 2, 3, 5, 7, 11}) {
      for (const std::int64_t dilation : {1, 2}) {
        const std::int64_t reach = dilation * (kernel - 1), groups = 1 + (kernel + stride) % 2;
        const Shape weights{6, 4 / groups, kernel, kernel};
        list.push_back(image({2, 4, reach + 7, reach + 10}, weights,
                             {.stride = {stride, stride}, .dilation = {dilation, dilation}, .groups = groups}));
        list.push_back(image({2, 4, 13, 12 + stride}, weights,
                             {.stride = {stride, stride},
                              .padding = {reach / 2 + 1, reach},
                              .dilation = {dilation, dilation},
                              .groups = 3 - groups == 2 ? 1 : groups,
                              .padding_after = {{reach, reach / 2}}}));
      }
    }
  }
  return list;
}

const std::vector<Geometry> kOthers = {
    image({2, 3, 9, 8}, {5, 3, 3, 2}, {.stride = {2, 3}, .padding = {1, 0}}),
    image({1, 3, 9, 40}, {5, 3, 3, 3}, {.stride = {2, 1}, .padding = {1, 1}}),
    image({3, 20, 8, 8}, {40, 20, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}),
    image({2, 70, 12, 12}, {66, 70, 1, 1}, {.stride = {2, 2}}),
    image({1, 2, 2, 3}, {3, 2, 3, 3}, {.stride = {4, 4}, .padding = {3, 1}}),     // fewer places than phases
    image({1, 2, 1, 6}, {3, 2, 1, 2}, {.stride = {3, 2}, .padding = {1, 1}}),     // windows of padding alone
    image({1, 2, 12, 12}, {3, 2, 2, 2}, {.stride = {5, 6}, .dilation = {3, 4}}),  // the step is a part of a tap's
    image({1, 2, 40, 40}, {3, 2, 3, 3}, {.stride = {20, 20}, .padding = {1, 1}}),
    {{2, 4, 23}, {6, 2, 4}, Conv1dOptions{.stride = {3}, .padding = {2}, .dilation = {2}, .groups = 2}},
    {{2, 4, 6, 5, 7}, {6, 2, 3, 2, 3}, Conv3dOptions{.stride = {2, 1, 2}, .padding = {1, 0, 1}, .groups = 2}},
    {{1, 2, 7, 5, 6}, {3, 2, 2, 1, 3}, Conv3dOptions{.stride = {3, 2, 2}, .padding = {1, 0, 2}, .dilation = {2, 1, 1}}},
};

}  // namespace

TEST_CASE("the data gradient of a strided convolution by phases is exact", "[opencl][conv]") {
  for (const Geometry& g : images()) check_phases(g);
  for (const Geometry& g : kOthers) check_phases(g);
}

TEST_CASE("phases apply an epilogue at every place, reached or not", "[opencl][conv]") {
  const DebugOption phases("conv", "phases");
  for (const Geometry& g : kOthers) {
    const std::int64_t channels = g.src[1];
    const Shape column = ops::with_spatial(1, channels, {1, 1, 1}, g.options.rank);
    const std::vector<Input> inputs{
        {integers(g.dst(), 1)}, {integers(g.weights, 2)}, {integers(column, 3)}, {integers(g.src, 4)}};
    const Build build = [&](const std::vector<Value>& x) {
      return std::vector{relu(data_gradient(g, x) + x[2]) - x[3]};
    };
    for (const DevicePtr& device : opencl_devices()) {
      const std::vector<Tensor> plain = run(device, inputs, build, {.fuse = false});
      for (const std::string& name : implementations_of(*device)) {
        INFO(g.str() << " by " << name << " on " << device->info().id);
        const DebugOption setting("gemm", name);
        CHECK(difference(run(device, inputs, build)[0], plain[0]) == "");
      }
    }
  }
}

TEST_CASE("phases split a long k and add up the parts", "[opencl][conv]") {
  check_phases(image({1, 5, 6, 6}, {700, 5, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}));
}

TEST_CASE("phases multiply by no zero between pixels", "[opencl][conv]") {
  const auto products_of = [](const Geometry& g) {
    std::int64_t products = 0;
    for (const opencl::Gemm& gemm : opencl::conv_polyphase(g.sizes()).products) {
      products += gemm.m * gemm.n * gemm.k * gemm.batch;
    }
    return products;
  };
  const Geometry padded = image({2, 6, 8, 12}, {10, 3, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2});
  CHECK(products_of(padded) == 2 * 8 * 12 * 10 * 3 * 9 / 4);
  const Geometry one = image({2, 6, 8, 12}, {10, 6, 1, 1}, {.stride = {2, 2}});
  CHECK(products_of(one) == 2 * 8 * 12 * 10 * 6 / 4);
  CHECK(opencl::conv_polyphase(one.sizes()).products.size() == 1);
  CHECK(opencl::conv_polyphase_refusal(image({1, 1, 40, 40}, {1, 1, 5, 5}, {.stride = {5, 5}}).sizes()) != "");
  CHECK(opencl::conv_polyphase_refusal(image({1, 1, 9, 9}, {1, 1, 3, 3}, {}).sizes()) != "");
}

}  // namespace concord::test
