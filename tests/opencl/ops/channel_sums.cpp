// Sums by channel of images that lie channels-last, run after run. With matrix cores one launch makes them, which
// counts the groups that are done in memory that it keeps.
#include <numeric>

#include "concord/compile/program.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
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

TEST_CASE("padded tokens: sums over all tokens leave the padding out", "[opencl][tokens]") {
  const TensorSpec src{DType::f32, {2, 40, 1029}}, sums{DType::f32, {1, 1, 1029}};
  const ops::Reduce op(ops::ReduceKind::sum, {0, 1});
  const Layout padded = opencl::padded_tokens(src, DType::bf16);
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    const Array numbers = integers(src.shape, 3);
    const std::vector<float> values(numbers.values.begin(), numbers.values.end());
    const BufferPtr from = device->allocate(values.size() * 4), tokens = device->allocate(padded->bytes());
    const BufferPtr to = device->allocate(1030 * 4);
    device->write(*from, 0, std::as_bytes(std::span(values)));
    device->fill(*to, 0, 1030 * 4, 0);
    const auto enqueue = [&](const Kernel& kernel, const BufferPtr& in, const BufferPtr& out) {
      const BufferPtr workspace = device->allocate(std::max<std::size_t>(kernel.workspace(), 4));
      const Operand source{in.get(), 0}, result{out.get(), 0};
      kernel.bind({&source, 1}, {&result, 1}, {workspace.get(), 0})->enqueue();
      device->finish();
    };
    enqueue(*device->prepare_reorder(src, nullptr, padded), from, tokens);
    const PreparedKernel prepared = device->prepare({&op, {src}, {padded}, {sums}, Precision::bf16});
    REQUIRE(same_layout(prepared.input_layouts[0], padded));
    enqueue(*prepared.kernel, tokens, to);
    std::vector<float> found(1030);
    device->read(*to, 0, std::as_writable_bytes(std::span(found)));
    std::vector<float> expected(1030);  // behind the results nothing is written
    for (std::size_t i = 0; i < values.size(); ++i) expected[i % 1029] += values[i];
    CHECK(found == expected);
  }
}

TEST_CASE("channels-last: sums in one launch have the bits of sums in a launch each", "[opencl][channels_last]") {
  // More than a launch takes, of one kind, with and without a prologue. The last has fewer channels, and goes alone.
  const std::vector<Shape> shapes{{4, 128, 33, 31}, {2, 200, 9, 7}, {3, 136, 20, 20}, {1, 768, 5, 5}, {4, 128, 33, 31},
                                  {2, 200, 9, 7},   {3, 256, 4, 4}, {5, 128, 3, 2},   {2, 640, 3, 3}, {4, 16, 33, 31}};
  const auto sum_of = [](Value x, std::size_t i) { return sum(i % 3 == 1 ? x * x : x, {0, 2, 3}); };
  for (const DevicePtr& own : opencl_devices_with_groups_of(256)) {
    INFO(own->info().id);
    const DebugOption kernels("kernels", "gpu");
    std::set<std::string> taken;
    const auto device = std::make_shared<OfferingDevice>(Device::open(own->info().id), taken);
    const CompileOptions options{.precision = Precision::bf16};
    const auto add = [&](Graph& graph, std::size_t i) {
      return sum_of(graph.input("x" + std::to_string(i), {DType::f32, shapes[i]}), i);
    };
    const auto write = [&](Program& program, std::size_t i) {
      const Array numbers = normal(shapes[i], static_cast<std::uint32_t>(i));
      const std::vector<float> values(numbers.values.begin(), numbers.values.end());
      program.write("x" + std::to_string(i), Tensor::of<float>(shapes[i], values));
    };
    Graph graph;
    std::vector<Value> results;
    for (std::size_t i = 0; i < shapes.size(); ++i) results.push_back(add(graph, i));
    Program together = compile(graph, results, std::make_shared<Variables>(device, 7), options);
    std::vector<std::string> launched;
    for (std::size_t i = 0; i < shapes.size(); ++i) write(together, i);
    for (const TraceEntry& entry : together.run_traced()) {
      if (entry.kernel.find("sum") != std::string::npos) launched.push_back(entry.kernel);
    }
    std::ranges::sort(launched);
    CHECK(launched == std::vector<std::string>{"grouped sums channels-last", "reduce_sum channels-last"});
    together.run();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      INFO(shapes[i].str());
      Graph one;
      const Value result = add(one, i);
      Program alone = compile(one, std::vector{result}, std::make_shared<Variables>(device, 7), options);
      write(alone, i);
      alone.run();
      CHECK(difference(together.read(results[i]), alone.read(result)).empty());
    }
  }
}

TEST_CASE("sums by channel of large rows of floats, several in one launch", "[opencl][ops]") {
  const std::vector<Shape> shapes{{2, 2100, 264}, {4200, 264}, {1, 1, 4400, 264}};
  for (const DevicePtr& own : opencl_devices_with_groups_of(256)) {
    INFO(own->info().id);
    const DebugOption kernels("kernels", "gpu");
    Graph graph;
    std::vector<Value> results;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Value x = graph.input("x" + std::to_string(i), {DType::f32, shapes[i]});
      std::vector<std::int64_t> axes(shapes[i].rank() - 1);
      std::iota(axes.begin(), axes.end(), 0);
      results.push_back(sum(x, axes));
    }
    Program program = compile(graph, results, std::make_shared<Variables>(Device::open(own->info().id), 7));
    std::vector<Array> numbers;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      numbers.push_back(integers(shapes[i], static_cast<std::uint32_t>(i)));
      const std::vector<float> values(numbers[i].values.begin(), numbers[i].values.end());
      program.write("x" + std::to_string(i), Tensor::of<float>(shapes[i], values));
    }
    std::vector<std::string> launched;
    for (const TraceEntry& entry : program.run_traced()) launched.push_back(entry.kernel);
    CHECK(launched == std::vector<std::string>{"grouped sums rows"});
    program.run();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      std::vector<double> expected(264);
      for (std::size_t k = 0; k < numbers[i].values.size(); ++k) expected[k % 264] += numbers[i].values[k];
      CHECK(to_array(program.read(results[i])).values == expected);
    }
  }
}

}  // namespace concord::test
