// Sums by channel of images that lie channels-last, run after run. With matrix cores one launch makes them, which
// counts the groups that are done in memory that it keeps.
#include "concord/compile/program.hpp"
#include "concord/ops/reduce.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

TEST_CASE("channels-last: sums by channel are right in every run", "[opencl][channels_last]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    for (const std::int64_t channels : {8, 200}) {
      INFO(channels << " channels on " << device->info().id);
      const Shape shape{4, channels, 33, 31};
      Graph graph;
      const Value x = graph.input("x", {DType::f32, shape});
      const Value y = sum(x, {0, 2, 3});
      std::set<std::string> taken;
      const auto offering = std::make_shared<OfferingDevice>(device, taken);
      Program program =
          compile(graph, std::vector{y}, std::make_shared<Variables>(offering, 7), {.precision = Precision::bf16});
      CHECK(taken == std::set<std::string>{"reduce_sum channels-last"});
      for (std::uint32_t turn = 0; turn < 4; ++turn) {
        const Array numbers = integers(shape, turn);
        std::vector<float> values(numbers.values.begin(), numbers.values.end());
        program.write("x", Tensor::of<float>(shape, values));
        for (int run = 0; run < 3; ++run) program.run();
        std::vector<double> expected(static_cast<std::size_t>(channels));
        const std::size_t pixels = 33 * 31;
        for (std::size_t i = 0; i < values.size(); ++i) {
          expected[i / pixels % expected.size()] += static_cast<double>(values[i]);
        }
        CHECK(to_array(program.read(y)).values == expected);
      }
    }
  }
}

}  // namespace concord::test
