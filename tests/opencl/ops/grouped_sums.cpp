// Small sums in one launch: each has the bits that it has alone.
#include "concord/compile/program.hpp"
#include "concord/ops/reduce.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Summed {
  Shape src;
  std::vector<std::int64_t> axes;
  bool is_mean = false;
};

Value built(Value x, const Summed& of) { return of.is_mean ? mean(x, of.axes) : sum(x, of.axes); }

}  // namespace

TEST_CASE("sums in one launch have the bits of sums in a launch each", "[opencl][reduce]") {
  // Columns, rows of one and of four values at a time, channels of images, all numbers, and a few more than a launch
  // takes.
  const std::vector<Summed> sums{{{64, 10}, {0}},           {{64, 1000}, {0}},
                                 {{64}, {}, true},          {{16, 50, 8, 8}, {0, 2, 3}},
                                 {{7, 1030}, {1}},          {{5, 4096}, {1}},
                                 {{3, 5, 2, 1}, {0, 2, 3}}, {{1, 9}, {0}},
                                 {{130, 3, 40}, {1}},       {{2, 300, 5, 7}, {0, 2, 3}},
                                 {{33, 129}, {1}}};
  std::vector<Input> inputs;
  for (std::size_t i = 0; i < sums.size(); ++i) inputs.push_back({normal(sums[i].src, static_cast<std::uint32_t>(i))});
  for (const DevicePtr& own : opencl_devices_with_groups_of(1024)) {
    INFO(own->info().id);
    const DebugOption kernels("kernels", "gpu");
    const DevicePtr device = Device::open(own->info().id);
    Graph graph;
    std::vector<Value> results;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      results.push_back(built(graph.input("x" + std::to_string(i), {DType::f32, sums[i].src}), sums[i]));
    }
    Program program = compile(graph, results, std::make_shared<Variables>(device, 7));
    std::vector<std::string> names;
    for (const TraceEntry& entry : program.run_traced()) {
      if (!entry.kernel.empty()) names.push_back(entry.kernel);
    }
    CHECK(names == std::vector<std::string>{"grouped sums"});
    const std::vector<Tensor> together = run(device, inputs, [&](const std::vector<Value>& x) {
      std::vector<Value> all;
      for (std::size_t i = 0; i < sums.size(); ++i) all.push_back(built(x[i], sums[i]));
      return all;
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      INFO(sums[i].src.str());
      const Tensor alone =
          run(device, {inputs[i]}, [&](const std::vector<Value>& x) { return std::vector{built(x[0], sums[i])}; })[0];
      CHECK(difference(together[i], alone).empty());
    }
  }
}

}  // namespace concord::test
