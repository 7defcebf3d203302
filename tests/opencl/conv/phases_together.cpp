// Data gradients of strided convolutions on images that lie channels-last: which of them are one launch.
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/ops/conv.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {

TEST_CASE("the phases of a small strided data gradient are one launch, those of a large one several",
          "[opencl][gemm]") {
  struct Gradient {
    Shape src, weights;
    Conv2dOptions options;
    bool is_one;
  };
  const std::vector<Gradient> gradients{
      {{1, 256, 14, 14}, {512, 256, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, true},   // four phases, all cut
      {{16, 128, 28, 28}, {256, 128, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, true},  // of which some are cut
      {{2, 64, 56, 55}, {128, 64, 3, 3}, {.stride = {2, 1}, .padding = {1, 1}}, true},     // two
      {{2, 64, 45, 29}, {128, 64, 5, 3}, {.stride = {3, 1}, .padding = {2, 0}}, true},     // three
      {{64, 128, 56, 56}, {128, 128, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, false},
      {{4, 128, 28, 28}, {256, 128, 1, 1}, {.stride = {2, 2}}, false},  // one phase
  };
  for (const DevicePtr& device : opencl_devices()) {
    const auto* const tma = opencl::find_gemm_implementation("tma");
    if (!tma->device_refusal(context_of(device), Precision::bf16).empty()) continue;
    for (const Gradient& g : gradients) {
      INFO(g.src.str() << " by " << g.weights.str() << " on " << device->info().id);
      const ops::ConvBackwardData op(g.options, g.src);
      const ops::ConvSizes s = ops::conv_sizes(g.src, g.weights, g.options);
      const TensorSpec dst{DType::f32, {s.n, s.o, s.oh, s.ow}}, weights{DType::f32, g.weights}, src{DType::f32, g.src};
      const PreparedKernel prepared = device->prepare(
          {&op, {dst, weights}, {opencl::channels_last(dst, DType::bf16), nullptr}, {src}, Precision::bf16});
      INFO(prepared.kernel->name());
      CHECK((prepared.kernel->name().find("in one launch") != std::string::npos) == g.is_one);
    }
  }
}

}  // namespace concord::test
