// Convolutions of images of one pixel as products of dense matrices, with epilogues whose operands lie along images,
// channels or both, against the implicit product.
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

TEST_CASE("convolutions of single pixels agree with the implicit product", "[opencl][conv]") {
  struct Sizes {
    std::int64_t n, c, o;
  };
  for (const Sizes s : {Sizes{64, 96, 4}, Sizes{3, 10, 33}, Sizes{1, 7, 5}, Sizes{5, 6, 1}, Sizes{4, 1, 9}}) {
    const std::vector<Input> inputs{{integers({s.n, s.c, 1, 1}, 1)},
                                    {integers({s.o, s.c, 1, 1}, 2)},
                                    {integers({s.o, 1, 1}, 3)},
                                    {integers({s.n, s.o, 1, 1}, 4)},
                                    {integers({s.n, 1, 1, 1}, 5)}};
    const Build build = [](const std::vector<Value>& x) {
      const Value y = relu(conv2d(relu(x[0]), x[1]) + x[2]) * x[4] - x[3];
      const std::vector<Value> gradients = gradient(sum(y * x[3]), std::vector{x[0], x[1]});
      return std::vector{y, gradients[0], gradients[1]};
    };
    for (const DevicePtr& device : opencl_devices()) {
      INFO(s.n << " images, " << s.c << " to " << s.o << " channels on " << device->info().id);
      const std::vector<Tensor> results = run(device, inputs, build);
      const DebugOption implicit("conv", "gemm");
      const std::vector<Tensor> expected = run(device, inputs, build, {.fuse = false});
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(difference(results[i], expected[i]) == "");
    }
  }
}

}  // namespace concord::test
