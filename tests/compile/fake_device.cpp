// The fake device's answers, and the looks into a lowered program that the tests of the passes share.
#include "compile/fake_device.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "concord/ops/conv.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/prologued.hpp"

namespace concord::test {
namespace {

class NamedLayout final : public LayoutDescription {
 public:
  explicit NamedLayout(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::size_t bytes() const override { return 4096; }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override { return name_ == other.str(); }
  [[nodiscard]] std::string str() const override { return name_; }
  [[nodiscard]] bool is_made_in_groups() const override { return name_.starts_with("grouped"); }

 private:
  std::string name_;
};

[[noreturn]] void refuse(const char* what) {
  throw std::logic_error(std::string("a pass asked the fake device to ") + what);
}

std::vector<float> results_of(const Operator& op, std::span<const float> inputs, std::size_t outputs) {
  if (const auto* pointwise = dynamic_cast<const ops::Pointwise*>(&op)) {
    std::vector<float> results;
    for (std::size_t k = 0; k < outputs; ++k) results.push_back(pointwise->expression().evaluate(k, inputs));
    return results;
  }
  if (const auto* fused = dynamic_cast<const ops::Fused*>(&op)) {
    std::vector<float> results = results_of(*fused->base(), inputs.first(fused->base_inputs()), outputs);
    std::vector<float> operands{results[0]};
    operands.insert(operands.end(), inputs.begin() + static_cast<std::ptrdiff_t>(fused->base_inputs()), inputs.end());
    results[0] = fused->epilogue().evaluate(0, operands);
    return results;
  }
  if (const auto* prologued = dynamic_cast<const ops::Prologued*>(&op)) {
    const auto extra = static_cast<std::ptrdiff_t>(prologued->base_inputs());
    std::vector<float> operands{inputs[0]}, own(inputs.begin(), inputs.begin() + extra);
    operands.insert(operands.end(), inputs.begin() + extra, inputs.end());
    own[0] = prologued->prologue().evaluate(0, operands);
    return results_of(*prologued->base(), own, outputs);
  }
  if (const auto* group = dynamic_cast<const ops::PointwiseGroup*>(&op)) {
    std::vector<float> results;
    for (std::size_t member = 0; member < group->members(); ++member) {
      std::vector<float> own;
      for (std::size_t i = 0; i < group->reach().size(); ++i) own.push_back(inputs[group->place_of(member, i)]);
      for (std::size_t k = 0; k < group->results(); ++k) {
        results.push_back(group->member().expression().evaluate(k, own));
      }
    }
    return results;
  }
  const bool product =
      dynamic_cast<const ops::Matmul*>(&op) != nullptr || dynamic_cast<const ops::Conv*>(&op) != nullptr;
  return std::vector<float>(outputs, product ? inputs[0] * inputs[1] : inputs[0]);
}

}  // namespace

Layout named_layout(const std::string& name) { return std::make_shared<NamedLayout>(name); }

std::string name_of(const Layout& layout) { return layout ? layout->str() : "row-major"; }

std::unique_ptr<Launch> FakeKernel::bind(std::span<const Operand>, std::span<const Operand>, Operand) const {
  refuse("bind a kernel");
}

FakeDevice::FakeDevice() { info_.name = "fake device"; }

PreparedKernel FakeDevice::prepare(const KernelRequest& request) {
  requests.push_back(request);
  const std::string op(request.op->name());
  if (op == without_kernel) throw NotSupported("no kernel for operator " + op);
  const auto found = rules.find(op);
  const LayoutRule rule = found == rules.end() ? LayoutRule{} : found->second;
  auto kernel = std::make_unique<FakeKernel>("fake " + op);
  kernel->input_layouts.assign(request.inputs.size(), rule.inputs);
  kernel->output_layouts.assign(request.outputs.size(), rule.outputs);
  if (rule.as_offered) {
    kernel->input_layouts = request.input_layouts;
    kernel->output_layouts.assign(request.outputs.size(), request.input_layouts.at(0));
  }
  PreparedKernel prepared{nullptr, kernel->input_layouts, kernel->output_layouts};
  prepared.kernel = std::move(kernel);
  if (const auto input = overwrites.find(op); input != overwrites.end()) prepared.overwrites = input->second;
  return prepared;
}

std::unique_ptr<Kernel> FakeDevice::prepare_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) {
  if (only_row_major_reorders && from && to) throw NotSupported("no reorder between two layouts");
  reorders.push_back({spec, from, to});
  auto kernel = std::make_unique<FakeKernel>("fake reorder");
  kernel->input_layouts = {from};
  kernel->output_layouts = {to};
  return kernel;
}

std::unique_ptr<Kernel> FakeDevice::prepare_reorders(std::span<const Reorder> together) {
  if (refuses_groups) return nullptr;
  groups.emplace_back(together.begin(), together.end());
  auto kernel = std::make_unique<FakeKernel>("fake reorders");
  for (const Reorder& reorder : together) {
    kernel->input_layouts.push_back(reorder.from);
    kernel->output_layouts.push_back(reorder.to);
  }
  return kernel;
}

std::unique_ptr<Kernel> FakeDevice::prepare_group(std::span<const KernelRequest> together) {
  operator_groups.push_back(together.size());
  if (refuses_groups) return nullptr;
  auto kernel = std::make_unique<FakeKernel>("fake group");
  for (const KernelRequest& request : together) {
    kernel->input_layouts.insert(kernel->input_layouts.end(), request.input_layouts.begin(),
                                 request.input_layouts.end());
  }
  kernel->output_layouts.resize(together.size(), group.result);
  return kernel;
}

std::unique_ptr<Kernel> FakeDevice::prepare_appended(const KernelRequest& request) {
  if (!appends) return nullptr;
  auto kernel = std::make_unique<FakeKernel>("fake appended");
  kernel->input_layouts = request.input_layouts;
  kernel->output_layouts.resize(request.outputs.size());
  return kernel;
}

bool FakeDevice::supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs, const TensorSpec& output,
                                   const Expression& epilogue, std::span<const TensorSpec> extra,
                                   Precision /*precision*/) const {
  questions.push_back(
      {std::string(op.name()), {op_inputs.begin(), op_inputs.end()}, output, epilogue, {extra.begin(), extra.end()}});
  return takes_epilogue && takes_epilogue(op, epilogue);
}

BufferPtr FakeDevice::allocate(std::size_t) { refuse("allocate memory"); }
StagingPtr FakeDevice::allocate_staging(std::size_t) { refuse("allocate staging memory"); }
void FakeDevice::write(Buffer&, std::size_t, std::span<const std::byte>) { refuse("write"); }
void FakeDevice::read(const Buffer&, std::size_t, std::span<std::byte>) { refuse("read"); }
void FakeDevice::copy(const Buffer&, std::size_t, Buffer&, std::size_t, std::size_t) { refuse("copy"); }
void FakeDevice::fill(Buffer&, std::size_t, std::size_t, std::uint32_t) { refuse("fill"); }
EventPtr FakeDevice::write_async(Buffer&, std::size_t, const StagingPtr&, std::size_t, const EventPtr&) {
  refuse("write");
}
EventPtr FakeDevice::record() { refuse("record an event"); }
void FakeDevice::wait_for(const EventPtr&) { refuse("wait"); }
void FakeDevice::finish() { refuse("finish"); }
double FakeDevice::timed(Launch&) { refuse("time a launch"); }
void FakeDevice::enqueue_recorded(Launch&, timeline::Label) { refuse("record a launch"); }

Value variable(Graph& graph, std::string name, TensorSpec spec) {
  return graph.variable(std::make_shared<Variable>(Variable{std::move(name), std::move(spec), {}, true, {}}));
}

Value named(Value value, std::string name) {
  value.graph().rename(value, std::move(name));
  return value;
}

std::vector<std::string> operators_of(const Lowered& program) {
  std::vector<std::string> names;
  for (const LoweredNode& node : program.nodes) names.emplace_back(node.op ? node.op->name() : "reorder");
  return names;
}

std::vector<std::string> names_of(const Lowered& program, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(program.value(id).name);
  return names;
}

ValueId id_of(const Lowered& program, const std::string& name) {
  INFO("the value " << name);
  const auto found = std::ranges::find(program.values, name, &LoweredValue::name);
  REQUIRE(std::ranges::count(program.values, name, &LoweredValue::name) == 1);
  return static_cast<ValueId>(found - program.values.begin());
}

const LoweredNode& producer_of(const Lowered& program, ValueId id) {
  INFO("the value " << program.value(id).name);
  const auto found = std::ranges::find_if(program.nodes, [&](const LoweredNode& node) {
    return std::ranges::find(node.outputs, id) != node.outputs.end();
  });
  REQUIRE(found != program.nodes.end());
  return *found;
}

bool in_order(const Lowered& program) {
  std::set<ValueId> made;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].kind != LoweredValue::Kind::computed) made.insert(static_cast<ValueId>(v));
  }
  for (const LoweredNode& node : program.nodes) {
    for (const ValueId id : node.inputs) {
      if (!made.contains(id)) return false;
    }
    for (const ValueId id : node.outputs) {
      if (!made.insert(id).second) return false;
    }
  }
  return std::ranges::all_of(program.assignments, [&](const auto& a) { return made.contains(a.value); });
}

std::map<std::string, float> evaluate(const Lowered& program, const std::map<std::string, float>& given) {
  std::vector<float> values(program.values.size());
  std::map<std::string, float> named;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].kind != LoweredValue::Kind::computed) values[v] = given.at(program.values[v].name);
  }
  for (const LoweredNode& node : program.nodes) {
    std::vector<float> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(values[static_cast<std::size_t>(id)]);
    const std::vector<float> results =
        node.op ? results_of(*node.op, inputs, node.outputs.size()) : std::vector<float>{inputs[0]};
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      values[static_cast<std::size_t>(node.outputs[k])] = results[k];
      named[program.value(node.outputs[k]).name] = results[k];
    }
  }
  return named;
}

}  // namespace concord::test
