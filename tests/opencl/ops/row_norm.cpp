// Which operators the kernels of row normalisation compute along with it, on every OpenCL device.
#include "concord/ops/row_norm.hpp"

#include <algorithm>

#include "concord/compile/program.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/ops/matmul.hpp"
#include "opencl/offering_device.hpp"
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

/// Makes prologues, whose operands stay row-major.
class PrologueDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] bool supports_prologue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const Expression& prologue, std::span<const TensorSpec> extra,
                                       Precision) const override {
    return kernels_support_prologue(op, op_inputs, prologue, extra);
  }
};

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

TEST_CASE("the products in a layer normalisation's gradient are prologues", "[opencl][row_norm]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    Graph graph;
    nn::LayerNorm norm({24});
    const Value x = graph.input("x", {DType::f32, {3, 5, 24}}), diff = graph.input("diff", x.spec());
    const Value loss = sum((norm(x) + x) * diff);
    std::vector<Value> wanted{x};
    for (const VariablePtr& parameter : graph.variables()) wanted.push_back(graph.variable(parameter));
    REQUIRE(wanted.size() == 3);
    const Names found = operators(std::make_shared<PrologueDevice>(device), graph, gradient(loss, wanted));
    CHECK(std::ranges::count(found, "multiply_backward+row_norm_backward+add") == 1);
    CHECK(std::ranges::count(found, "multiply_backward+reduce_sum") == 1);
    CHECK(std::ranges::count(found, "multiply_backward") == 0);
  }
}

TEST_CASE("operators with a prologue and no kernel for it run behind that of the formula", "[opencl][row_norm]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    const std::vector<Input> inputs{
        {integers({6, 5, 24}, 1)}, {integers({6, 5, 24}, 2)}, {integers({24}, 3)}, {normal({6, 5, 24}, 4)}};
    const Build build = [](const std::vector<Value>& x) {
      const RowNormResult norm = row_norm(x[3], 2);
      const Value diff =
          x[0].graph().add(std::make_shared<ops::RowNormBackward>(2, true), {x[0] * x[2], norm.dst, norm.rstd});
      return std::vector{sum(x[0] * x[1], {0, 1}), diff + x[1]};
    };
    const std::vector<Tensor> joined = run(std::make_shared<PrologueDevice>(device), inputs, build);
    const std::vector<Tensor> apart = run(device, inputs, build);
    for (std::size_t k = 0; k < apart.size(); ++k) CHECK(difference(joined[k], apart[k]) == "");
  }
}

}  // namespace concord::test
