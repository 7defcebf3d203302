// Which operators the kernels of row normalisation compute along with it, on every OpenCL device.
#include "concord/ops/row_norm.hpp"

#include "concord/compile/program.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/ops/matmul.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using Names = std::vector<std::string>;

/// The operators of the compiled graph in execution order.
Names operators(const DevicePtr& device, const Graph& graph, const std::vector<Value>& outputs) {
  Program program = compile(graph, outputs, std::make_shared<Variables>(device, 7));
  Names names;
  for (const TraceEntry& entry : program.run_traced()) names.push_back(entry.op);
  return names;
}

}  // namespace

TEST_CASE("layer normalisation is one launch, and so is its gradient with a sum behind it", "[opencl][row_norm]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    Graph graph;
    nn::LayerNorm norm({24});
    const Value x = graph.input("x", {DType::f32, {3, 5, 24}});
    CHECK(operators(device, graph, {norm(x)}) == Names{"row_norm+multiply+add"});

    const Value diff = graph.input("diff", x.spec());
    const Value dx = gradient(sum(row_norm(x, 2).dst * diff), std::vector{x})[0] + diff;
    CHECK(operators(device, graph, {dx}) == Names{"row_norm", "expand+multiply_backward", "row_norm_backward+add"});
  }
}

TEST_CASE("row_norm keeps a result that two read, and operands that no stride tells", "[opencl][row_norm]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {3, 5, 24}});
    const Value dst = row_norm(x, 2).dst;
    CHECK(operators(device, graph, {relu(dst), sum(dst)}) == Names{"row_norm", "relu", "reduce_sum"});
    // One number a place of all batches: its rows have no single stride.
    const Value by_place = graph.input("p", {DType::f32, {1, 5, 24}});
    CHECK(operators(device, graph, {row_norm(x, 2).dst + by_place}) == Names{"row_norm", "add"});
  }
}

}  // namespace concord::test
