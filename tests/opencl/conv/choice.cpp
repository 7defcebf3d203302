// The choice among the implementations of a convolution: what the log says of it, and the names that ask for one.
#include <fmt/format.h>

#include <algorithm>

#include "concord/core/log.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// What the log says of a convolution of (1, 4, 8, 8) with (4, 4, 3, 3) and of its data gradient.
std::string said_of(const DevicePtr& device, std::int64_t stride) {
  const Conv2dOptions options{.stride = {stride, stride}, .padding = {1, 1}};
  const Shape src{1, 4, 8, 8}, weights{4, 4, 3, 3};
  std::string said;
  set_log([&](LogLevel, std::string_view message) { said += std::string(message) + "\n"; }, LogLevel::debug);
  static_cast<void>(run(device, {{integers(src, 1)}, {integers(weights, 2)}}, [&](const std::vector<Value>& x) {
    const Value dst = conv2d(x[0], x[1], options);
    return std::vector{dst, gradient(sum(dst * dst), std::vector{x[0]})[0]};
  }));
  set_log({});
  return said;
}

}  // namespace

TEST_CASE("the log says which implementation computes a convolution and why no other does", "[opencl][conv]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    const std::string said = said_of(device, 1);
    CHECK_THAT(said,
               contains("conv2d [1, 4, 8, 8] * [4, 4, 3, 3] stride 1x1") && contains(" in fp32 by \"gemm\"; not by"));
    CHECK_THAT(said, contains("; not by \"winograd\": ") && contains(" ms are expected"));
    CHECK_THAT(said, contains("; not by \"depthwise\": the channels are not each convolved by themselves"));
    CHECK_THAT(said, contains("; not by \"polyphase\": the stride is 1"));
  }
}

TEST_CASE("a convolution takes the implementation that is named, where that computes it", "[opencl][conv]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    for (const char* name : {"polyphase", "phases"}) {  // the second is the earlier name
      const DebugOption named("conv", name);
      CHECK_THAT(said_of(device, 2), contains("conv2d_backward_data") && contains(" by \"polyphase\""));
    }
    const DebugOption named("conv", "winograd");
    CHECK_THAT(said_of(device, 1), contains(" by \"winograd\""));
    CHECK_THAT(said_of(device, 2), contains(" by \"gemm\"; not by \"winograd\": it is strided"));
  }
}

// Another layout would cost two reorders for each of them.
TEST_CASE("a small convolution of an image that lies channels-last leaves it so", "[opencl][conv]") {
  for (const DevicePtr& device : opencl_devices()) {
    if (!opencl::find_gemm_implementation("tma")->device_refusal(context_of(device), Precision::bf16).empty()) continue;
    Graph graph;
    const std::vector<Shape> shapes{{1, 64, 56, 56}, {64, 64, 3, 3}, {128, 64, 1, 1}};
    std::vector<Value> x;
    for (const char* name : {"image", "first", "second"})
      x.push_back(graph.input(name, {DType::f32, shapes[x.size()]}));
    const Value y = conv2d(conv2d(x[0], x[1], {.padding = {1, 1}}), x[2], {.stride = {2, 2}});
    Program program =
        compile(graph, std::vector{y}, std::make_shared<Variables>(device, 1), {.precision = Precision::bf16});
    for (const Value& input : x) program.write(input.name(), Tensor(DType::f32, input.shape()));
    const std::vector<TraceEntry> entries = program.run_traced();
    const auto first = std::ranges::find(entries, "conv2d", &TraceEntry::op);
    REQUIRE(first != entries.end());
    const auto second = std::find_if(std::next(first), entries.end(),
                                     [](const TraceEntry& entry) { return entry.node != "reorder/second"; });
    REQUIRE(second != entries.end());
    CHECK(second->op == "conv2d");  // between them no reorder but that of the weights
  }
}

}  // namespace concord::test
