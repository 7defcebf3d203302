// Program: from a graph to bound launches, and running them.
#include "concord/compile/program.hpp"

#include <algorithm>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/compile/recompute.hpp"
#include "concord/compile/tuning.hpp"
#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/log.hpp"

namespace concord {
namespace {

void add_source(ProgramImpl& program, const Buffer* buffer) {
  const auto is_same = [&](const auto& other) { return other.get() == buffer; };
  if (std::ranges::none_of(program.variable_buffers, is_same)) return;  // made by another settled node
  program.sources.push_back({buffer, 0});
}

/// Storage of a variable. A state of a parameter is given as one that shares the parameter's ownership, which says
/// whose it is.
BufferPtr storage_of(const Lowered& lowered, const LoweredValue& wanted, Variables& variables) {
  const VariablePtr& variable = wanted.variable;
  if (variable->of.empty()) return variables.require(variable, wanted.name);
  for (const LoweredValue& value : lowered.values) {
    const bool is_it = value.variable && value.variable->role == VariableRole::parameter && value.name == variable->of;
    if (is_it) return variables.require(VariablePtr(value.variable, variable.get()), wanted.name);
  }
  return variables.require(*variable);
}

void allocate(ProgramImpl& program, const MemoryPlan& plan) {
  const DeviceInfo& info = program.device().info();
  const Arena arena = place(program.lowered, plan, info);
  for (const std::size_t bytes : arena.slabs) program.memory += bytes;
  const std::size_t needed = program.memory + missing_bytes(program.lowered, *program.variables);
  CONCORD_CHECK(info.memory == 0 || needed + program.device().allocated() <= info.memory, OutOfMemory,
                "the program needs {} MiB beside the {} MiB in use; {} has {} MiB", needed >> 20,
                program.device().allocated() >> 20, info.name, info.memory >> 20);
  for (const std::size_t bytes : arena.slabs) program.slabs.push_back(program.device().allocate(bytes));

  const auto block = [&](std::optional<std::size_t> number) -> Operand {
    if (!number) return {};
    const Placement& placement = arena.placements[*number];
    return {program.slabs[placement.slab].get(), placement.offset};
  };
  program.operands.resize(program.lowered.values.size());
  for (std::size_t v = 0; v < program.operands.size(); ++v) {
    const MemoryPlan::Storage& storage = plan.storage[v];
    if (storage.variable >= 0) {
      program.variable_buffers.push_back(
          storage_of(program.lowered, program.lowered.value(storage.variable), *program.variables));
      program.operands[v] = {program.variable_buffers.back().get(), 0};
    } else {
      program.operands[v] = block(storage.block);
    }
  }

  const auto operand = [&](ValueId id) { return program.operands[static_cast<std::size_t>(id)]; };
  for (std::size_t n = 0; n < program.lowered.nodes.size(); ++n) {
    const LoweredNode& node = program.lowered.nodes[n];
    if (!node.kernel) continue;
    std::vector<Operand> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(operand(id));
    for (const ValueId id : node.outputs) outputs.push_back(operand(id));
    std::unique_ptr<Launch> launch = node.kernel->bind(inputs, outputs, block(plan.workspaces[n]));
    if (node.settled) {
      program.settled.push_back(std::move(launch));
      for (const Operand& source : inputs) add_source(program, source.buffer);
      continue;
    }
    program.launches.push_back(std::move(launch));
    program.launch_nodes.push_back(n);
  }
  for (const LoweredAssignment& assignment : program.lowered.assignments) {
    program.assigned.push_back(operand(assignment.variable).buffer);
  }
  for (const LoweredAssignment& copy : plan.copies) {
    program.commits.push_back({operand(copy.value), operand(copy.variable), program.lowered.bytes(copy.variable)});
  }
}

}  // namespace

Lowered lower_and_fuse(const Graph& graph, std::span<const Value> outputs, const Device& device,
                       const CompileOptions& options) {
  Lowered lowered = lower(graph, outputs, options.keep_all);
  if (options.fuse && !options.keep_all) {
    fuse(lowered, device);
    group_updates(lowered);
  }
  if (options.keep_fused) {
    for (const LoweredNode& node : lowered.nodes) {
      for (const ValueId id : node.outputs) lowered.value(id).keep = true;
    }
  }
  return lowered;
}

Arena place(const Lowered& lowered, const MemoryPlan& plan, const DeviceInfo& device) {
  const std::size_t limit = device.max_allocation > 0 ? device.max_allocation : SIZE_MAX;
  for (std::size_t v = 0; v < lowered.values.size(); ++v) {
    const std::optional<std::size_t> block = plan.storage[v].block;
    if (block) require_allocatable(lowered.values[v], plan.blocks[*block].bytes, device);
  }
  for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
    const std::optional<std::size_t> workspace = plan.workspaces[n];
    CONCORD_CHECK(!workspace || plan.blocks[*workspace].bytes <= limit, OutOfMemory,
                  "the kernel of '{}' needs a workspace of {} MiB; {} allocates at most {} MiB at once",
                  lowered.nodes[n].name, plan.blocks[*workspace].bytes >> 20, device.name, limit >> 20);
  }
  return place_blocks(plan.blocks, limit);
}

std::size_t missing_bytes(const Lowered& lowered, const Variables& variables) {
  std::size_t bytes = 0;
  for (const LoweredValue& value : lowered.values) {
    if (value.variable && !variables.contains(value.name)) bytes += value.spec.bytes();
  }
  return bytes;
}

void ProgramImpl::settle() {
  if (settled.empty()) return;
  bool is_current = settled_once;
  for (Source& source : sources) {
    const std::uint64_t revision = source.buffer->revision();
    is_current = is_current && source.seen == revision;
    source.seen = revision;
  }
  if (is_current) return;
  const timeline::Span span("settle");
  settled_once = false;  // until all are: one of them may fail
  for (const std::unique_ptr<Launch>& launch : settled) launch->enqueue();
  settled_once = true;
}

void ProgramImpl::commit() {
  for (Buffer* buffer : assigned) buffer->touch();
  for (const Copy& copy : commits) {
    device().copy(*copy.from.buffer, copy.from.offset, *copy.to.buffer, copy.to.offset, copy.bytes);
  }
}

Tensor ProgramImpl::read(ValueId id) {
  const Arriving read = read_async(id);
  if (read.event) read.event->wait();
  return read.value;
}

ProgramImpl::Arriving ProgramImpl::read_async(ValueId id) {
  const LoweredValue& value = lowered.value(id);
  const Operand operand = operands[static_cast<std::size_t>(id)];
  Arriving read{Tensor::unset(value.spec), nullptr};
  read.event = value.layout ? plain_copies.read(device(), value, operand, read.value.bytes())
                            : device().read_async(*operand.buffer, operand.offset, read.value.bytes());
  return read;
}

void ProgramImpl::overwrite(ValueId id, const Tensor& tensor) {
  const LoweredValue& value = lowered.value(id);
  const Operand operand = operands[static_cast<std::size_t>(id)];
  if (value.layout) return plain_copies.write(device(), value, tensor.bytes(), operand);
  device().write_kept(*operand.buffer, operand.offset, tensor.bytes());
}

namespace {

std::unique_ptr<ProgramImpl> compiled(const Graph& graph, std::span<const Value> outputs, const VariablesPtr& variables,
                                      const CompileOptions& options) {
  const timeline::Span span("compile");
  CONCORD_CHECK(options.memory_budget == 0 || !(options.keep_all || options.keep_fused), ArgumentError,
                "a memory budget cannot be held while every value is kept (keep_all, keep_fused)");
  auto program = std::make_unique<ProgramImpl>();
  program->variables = variables;
  program->keep_all = options.keep_all || options.keep_fused;
  program->lowered = lower_and_fuse(graph, outputs, variables->device(), options);
  const std::vector<std::string>& known = variables->device().info().precisions;
  if (std::ranges::find(known, name_of(options.precision)) == known.end()) {
    log(LogLevel::info, fmt::format("{} names no units for {}: products may be computed in fp32",
                                    variables->device().info().name, name_of(options.precision)));
  }
  if (const double seconds = tuning_seconds(options); seconds > 0) {
    const timeline::Span tuning("tune");
    tune_at_first_use(program->lowered, variables->device(), options.precision, seconds);
  }
  {
    const timeline::Span kernels("prepare kernels");
    choose_layouts(program->lowered, variables->device(), options.precision);
  }
  if (!program->keep_all) find_settled(program->lowered);
  if (options.memory_budget > 0) {
    const timeline::Span recomputation("recompute");
    recompute(program->lowered, options.memory_budget, variables->device().info());
  }
  const MemoryPlan plan = plan_memory(program->lowered, program->keep_all);
  {
    const timeline::Span memory("allocate and bind");
    allocate(*program, plan);
  }
  for (std::size_t v = 0; v < program->lowered.values.size(); ++v) {
    const LoweredValue& value = program->lowered.values[v];
    if (value.keep || value.kind == LoweredValue::Kind::variable) {
      program->names.emplace(value.name, static_cast<ValueId>(v));
    }
  }
  return program;
}

}  // namespace

Program compile(const Graph& graph, std::span<const Value> outputs, const VariablesPtr& variables,
                const CompileOptions& options) {
  CONCORD_CHECK(variables, ArgumentError, "compile is given no Variables: std::make_shared<Variables>(device, seed)");
  for (const Value& output : outputs) graph.require_own(output, "an output of the program");
  const Device::Use use(variables->device());
  return with_host_memory("compiling a program", [&] { return Program(compiled(graph, outputs, variables, options)); });
}

Program compile(const Graph& graph, std::initializer_list<Value> outputs, const VariablesPtr& variables,
                const CompileOptions& options) {
  return compile(graph, std::span(outputs.begin(), outputs.size()), variables, options);
}

Program compile(const Graph& graph, const Value& output, const VariablesPtr& variables, const CompileOptions& options) {
  return compile(graph, std::span(&output, 1), variables, options);
}

Program::Program(std::unique_ptr<ProgramImpl> impl) : impl_("a Program", std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

void Program::run() {
  const Device::Use use(impl_->device());
  with_host_memory("a run of a program", [&] { impl_->run(); });
}

void ProgramImpl::run() {
  settle();
  if (timeline::recording()) {
    enqueue_recorded();
  } else {
    for (const std::unique_ptr<Launch>& launch : launches) launch->enqueue();
  }
  commit();
  device().flush();
}

void Program::write(const std::string& input, const Tensor& value) {
  const Device::Use use(impl_->device());
  const Operand operand = this->input(input);
  const TensorSpec& spec = impl_->lowered.value(impl_->names.at(input)).spec;
  CONCORD_CHECK(spec == value.spec(), ShapeError, "input '{}' is {}, got {}", input, spec.str(), value.spec().str());
  CONCORD_CHECK(value.bytes().size() == spec.bytes(), ArgumentError,
                "input '{}' is given a tensor that holds nothing: it was moved from", input);
  impl_->device().write(*operand.buffer, operand.offset, value.bytes());
}

Operand Program::input(const std::string& name) const {
  const auto found = impl_->names.find(name);
  CONCORD_CHECK(found != impl_->names.end() && impl_->lowered.value(found->second).kind == LoweredValue::Kind::input,
                ArgumentError, "the program has no input '{}'", name);
  return impl_->operands[static_cast<std::size_t>(found->second)];
}

Tensor Program::read(const std::string& value) const {
  const auto found = impl_->names.find(value);
  CONCORD_CHECK(found != impl_->names.end(), ArgumentError,
                "the value '{}' is not readable: it is no output of the program{}", value,
                impl_->keep_all ? "" : " (compile with keep_all to read every value)");
  const Device::Use use(impl_->device());
  return with_host_memory("reading the value " + value, [&] { return impl_->read(found->second); });
}

std::vector<std::string> Program::values() const {
  std::vector<std::string> names;
  for (const LoweredValue& value : impl_->lowered.values) {
    if (impl_->names.contains(value.name)) names.push_back(value.name);
  }
  return names;
}

std::size_t Program::memory() const { return impl_->memory; }
std::size_t Program::launches() const { return impl_->launches.size() + impl_->commits.size(); }
Device& Program::device() const { return impl_->device(); }
Variables& Program::variables() const { return *impl_->variables; }

namespace {

void add_cost(Cost& total, const Lowered& program, const LoweredNode& node) {
  if (!node.op || !node.kernel) return;
  const Cost cost = node.op->cost(program.specs(node.inputs), program.specs(node.outputs));
  total.flops += cost.flops;
  total.bytes += cost.bytes;
}

}  // namespace

Cost Program::cost() const {
  Cost total;
  for (const LoweredNode& node : impl_->lowered.nodes) add_cost(total, impl_->lowered, node);
  return total;
}

Recomputed Program::recomputed() const {
  Recomputed total;
  for (const LoweredNode& node : impl_->lowered.nodes) {
    if (!node.again || !node.kernel) continue;
    ++total.launches;
    add_cost(total.cost, impl_->lowered, node);
  }
  return total;
}

}  // namespace concord
