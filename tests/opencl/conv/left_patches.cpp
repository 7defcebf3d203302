// The data gradient of a convolution with patches as the left operand of the product, as CPUs compute it: with an
// epilogue whose operands lie along images, channels or both.
#include "concord/opencl/conv/conv.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

TEST_CASE("a data gradient by pixels applies an epilogue at every place", "[opencl][conv]") {
  const DebugOption kernels("kernels", "cpu"), product("conv", "gemm");
  struct Shaped {
    Shape src, weights;
    Conv2dOptions options;
  };
  for (const Shaped& c :
       {Shaped{{2, 5, 7, 9}, {6, 5, 3, 3}, {.padding = {1, 1}}}, Shaped{{3, 20, 8, 8}, {17, 20, 5, 5}, {}},
        Shaped{{1, 4, 12, 5}, {3, 4, 3, 2}, {.padding = {2, 0}, .dilation = {2, 1}}}}) {
    const ops::ConvOptions options = c.options;
    const ops::ConvSizes sizes = ops::conv_sizes(c.src, c.weights, options);
    REQUIRE(opencl::conv_pixels_support(sizes));
    const Shape dst = ops::with_spatial(sizes.n, sizes.o, {sizes.od, sizes.oh, sizes.ow}, options.rank);
    const Shape column = ops::with_spatial(1, c.src[1], {1, 1, 1}, options.rank);
    const std::vector<Input> inputs{
        {integers(dst, 1)}, {integers(c.weights, 2)}, {integers(column, 3)}, {integers(c.src, 4)}};
    const Build build = [&](const std::vector<Value>& x) {
      const Value gradient = x[0].graph().add(std::make_shared<ops::ConvBackwardData>(options, c.src), {x[0], x[1]});
      return std::vector{relu(gradient + x[2]) - x[3]};
    };
    for (const DevicePtr& device : opencl_devices()) {
      INFO(c.src.str() << " * " << c.weights.str() << " on " << device->info().id);
      const DevicePtr opened = Device::open(device->info().id);  // with the setting
      const DebugOption plain("gemm", "reference");
      const std::vector<Tensor> expected = run(opened, inputs, build, {.fuse = false});
      const DebugOption panel("gemm", "panel");
      CHECK(difference(run(opened, inputs, build)[0], expected[0]) == "");
    }
  }
}

}  // namespace concord::test
