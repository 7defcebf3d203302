// Programs whose weights are brought into a layout in groups, run on real devices: the numbers of programs without.
#include <memory>
#include <numeric>

#include "concord/ops/copy.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"
#include "forwarding_device.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// The bytes of row-major numbers under another name.
class RenamedLayout final : public LayoutDescription {
 public:
  explicit RenamedLayout(std::size_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::size_t bytes() const override { return bytes_; }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override { return other.str() == str(); }
  [[nodiscard]] std::string str() const override { return "renamed"; }
  [[nodiscard]] bool is_made_in_groups() const override { return true; }

 private:
  std::size_t bytes_;
};

class JointLaunch final : public Launch {
 public:
  std::vector<std::unique_ptr<Launch>> launches;
  void enqueue() override {
    for (const auto& launch : launches) launch->enqueue();
  }
};

class JointKernel final : public Kernel {
 public:
  explicit JointKernel(std::vector<std::unique_ptr<Kernel>> kernels) : kernels_(std::move(kernels)) {}
  [[nodiscard]] std::string name() const override { return "copies"; }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    auto joint = std::make_unique<JointLaunch>();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      joint->launches.push_back(kernels_[i]->bind(inputs.subspan(i, 1), outputs.subspan(i, 1), workspace));
    }
    return joint;
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

/// Whose products take the weights, their right operand, renamed.
class RenamingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::vector<std::size_t> groups;  // their sizes

  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    PreparedKernel prepared = ForwardingDevice::prepare(request);
    const auto* const fused = dynamic_cast<const ops::Fused*>(request.op);
    const Operator* const base = fused != nullptr ? fused->base().get() : request.op;
    if (dynamic_cast<const ops::Matmul*>(base) != nullptr && prepared.input_layouts[1] == nullptr) {
      prepared.input_layouts[1] = std::make_shared<RenamedLayout>(request.inputs[1].bytes());
    }
    return prepared;
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                        const Layout& to) override {
    if (from != nullptr || to == nullptr || !to->is_made_in_groups()) {
      return ForwardingDevice::prepare_reorder(spec, from, to);
    }
    std::vector<std::size_t> order(spec.shape.rank());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const ops::Transpose copy(order);
    return ForwardingDevice::prepare({&copy, {spec}, {nullptr}, {spec}}).kernel;
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorders(std::span<const Reorder> reorders) override {
    groups.push_back(reorders.size());
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const Reorder& reorder : reorders) kernels.push_back(prepare_reorder(reorder.spec, reorder.from, reorder.to));
    return std::make_unique<JointKernel>(std::move(kernels));
  }
};

Value network(Graph& graph, std::vector<Value>& weights) {
  Value y = graph.input("x", {DType::f32, {5, 6}});
  for (const char* const name : {"a", "b", "c"}) {
    const Variable weight{name, {DType::f32, {6, 6}}, {Initializer::Kind::normal, 0, 0.5F}, true, {}};
    weights.push_back(graph.variable(std::make_shared<Variable>(weight)));
    y = tanh(matmul(y, weights.back()));
  }
  return y;
}

/// Results of runs before and after two updates of the weights by another program.
std::vector<Tensor> results(const DevicePtr& device) {
  const auto variables = std::make_shared<Variables>(device, 3);
  Graph reading, updating;
  std::vector<Value> weights;
  const Value y = network(reading, weights);
  weights.clear();
  const Value z = network(updating, weights);
  for (const Value& weight : weights) updating.assign(weight, weight * (mean(z) + 0.9F));
  Program read = compile(reading, std::vector{y}, variables), update = compile(updating, std::vector{z}, variables);
  Tensor x(DType::f32, {5, 6});
  std::iota(x.values<float>().begin(), x.values<float>().end(), -15.0F);
  for (float& number : x.values<float>()) number /= 20;
  read.write("x", x);
  update.write("x", x);
  std::vector<Tensor> found;
  for (int turn = 0; turn < 3; ++turn) {
    for (int again = 0; again < 2; ++again) {
      read.run();
      found.push_back(read.read(y.name()));
    }
    update.run();
    found.push_back(update.read(z.name()));
  }
  return found;
}

}  // namespace

TEST_CASE("weights that are brought into their layout in groups give the same numbers, whoever changes them",
          "[compile]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().name);
    const auto renaming = std::make_shared<RenamingDevice>(device);
    const std::vector<Tensor> found = results(renaming), expected = results(device);
    // oneDNN's products have layouts of their own.
    if (device->info().id.starts_with("opencl")) CHECK(renaming->groups == std::vector<std::size_t>{3, 3});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(std::ranges::equal(found[i].values<float>(), expected[i].values<float>()));
    }
  }
}

}  // namespace concord::test
