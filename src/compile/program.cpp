// Program: its runs, and what goes in and comes out.
#include "concord/compile/program.hpp"

#include <algorithm>
#include <set>

#include "concord/compile/program_impl.hpp"
#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"

namespace concord {

void ProgramImpl::settle() {
  if (invariants->parts.empty()) return;
  const bool is_first = !invariants->are_computed;
  bool is_current = !is_first;
  for (Invariants::Source& source : invariants->sources) {
    const std::uint64_t revision = source.buffer->revision();
    source.has_changed = source.seen != revision;
    is_current = is_current && !source.has_changed;
    source.seen = revision;
  }
  if (is_current) return;
  const timeline::Span span("settle");
  invariants->are_computed = false;  // until all are: one of them may fail
  const auto has_changed = [&](std::size_t source) { return invariants->sources[source].has_changed; };
  for (const Invariants::Part& part : invariants->parts) {
    if (is_first || std::ranges::any_of(part.sources, has_changed)) part.launch->enqueue();
  }
  invariants->are_computed = true;
}

void ProgramImpl::commit() { commit(0, commits.size()); }

void ProgramImpl::commit(std::size_t begin, std::size_t end) {
  for (Invariants::Source& source : invariants->sources) source.before_commit = source.buffer->revision();
  for (Buffer* buffer : assigned) buffer->touch();
  for (std::size_t i = begin; i < end; ++i) {
    const Copy& copy = commits[i];
    device().copy(*copy.from.buffer, copy.from.offset, *copy.to.buffer, copy.to.offset, copy.bytes);
  }
  for (Invariants::Source& source : invariants->sources) {  // a change by others, in this run too, stays unseen
    if (source.is_followed) source.seen += source.buffer->revision() - source.before_commit;
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
  device().write_deferred(*operand.buffer, operand.offset, tensor.bytes());
}

Program::Program(std::unique_ptr<ProgramImpl> impl) : impl_("a Program", std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

void Program::run() { run({}, {}); }

void Program::run(std::span<const std::size_t> marks, const std::function<void(std::size_t)>& reached) {
  const Device::Use use(impl_->device());
  with_host_memory("a run of a program", [&] { impl_->run(marks, reached); });
}

void ProgramImpl::require_all_reduce() const {
  CONCORD_CHECK(all_reduces.empty() || all_reduce, ArgumentError,
                "the program has an all_reduce, but no ranks to sum over; call Program::all_reduce_by first");
}

void ProgramImpl::sum_over_ranks(std::size_t place) {
  if (!all_reduce || !std::ranges::binary_search(all_reduces, place)) return;
  const ValueId value = lowered.nodes[launch_nodes[place]].outputs[0];
  all_reduce(operands[static_cast<std::size_t>(value)], lowered.bytes(value) / sizeof(float));
}

void ProgramImpl::run(std::span<const std::size_t> marks, const std::function<void(std::size_t)>& reached) {
  require_all_reduce();
  settle();
  std::size_t next = 0;
  enqueue_all([&] {
    const timeline::Span span("enqueue step");
    for (std::size_t i = 0; i < launches.size(); ++i) {
      while (next < marks.size() && marks[next] <= i) reached(next++);
      enqueue(i);
    }
  });
  commit();
  while (next < marks.size()) reached(next++);
  device().flush();
}

void Program::run_before_pause() {
  const Device::Use use(impl_->device());
  with_host_memory("a run of a program", [&] { impl_->run_before_pause(); });
}

void Program::run_after_pause() {
  const Device::Use use(impl_->device());
  with_host_memory("a run of a program", [&] { impl_->run_after_pause(); });
}

void ProgramImpl::run_before_pause() {
  require_all_reduce();
  settle();
  const timeline::Span span("enqueue step");
  enqueue_all([&] {
    for (std::size_t i = 0; i < pause.value().launches; ++i) enqueue(i);
  });
  commit(0, pause->commits);
  device().flush();
}

void ProgramImpl::run_after_pause() {
  const timeline::Span span("enqueue step");
  enqueue_all([&] {
    for (std::size_t i = pause.value().launches; i < launches.size(); ++i) enqueue(i);
  });
  commit(pause->commits, commits.size());
  device().flush();
}

bool Program::pauses() const { return impl_->pause.has_value(); }

Program Program::twin() const {
  const Device::Use use(impl_->device());
  return with_host_memory("compiling a program", [&] {
    auto twin = std::make_unique<ProgramImpl>();
    twin->variables = impl_->variables;
    twin->lowered = impl_->lowered;
    twin->names = impl_->names;
    twin->retains_all = impl_->retains_all;
    twin->all_reduce = impl_->all_reduce;
    twin->pause = impl_->pause;
    allocate(*twin, plan_memory(twin->lowered, twin->retains_all), &*impl_);
    return Program(std::move(twin));
  });
}

void Program::all_reduce_by(std::function<void(const Operand& values, std::size_t count)> sum) {
  impl_->all_reduce = std::move(sum);
}

std::vector<Program::AllReduced> Program::all_reduces() const {
  std::vector<AllReduced> all;
  for (const std::size_t place : impl_->all_reduces) {
    const ValueId value = impl_->lowered.nodes[impl_->launch_nodes[place]].outputs[0];
    all.push_back({place, impl_->lowered.bytes(value) / sizeof(float)});
  }
  return all;
}

std::size_t Program::launches_until_assigned(std::span<const std::string> variables) const {
  std::size_t until = 0;
  for (const std::string& name : variables) {
    const auto found = impl_->names.find(name);
    CONCORD_CHECK(found != impl_->names.end(), ArgumentError, "the program has no variable '{}'", name);
    const Operand to = impl_->operands[static_cast<std::size_t>(found->second)];
    const auto is_there = [&](const Operand& other) { return other.buffer == to.buffer && other.offset == to.offset; };
    const auto writes = [&](std::size_t launch) {
      const std::vector<ValueId>& outputs = impl_->lowered.nodes[impl_->launch_nodes[launch]].outputs;
      return std::ranges::any_of(outputs,
                                 [&](ValueId id) { return is_there(impl_->operands[static_cast<std::size_t>(id)]); });
    };
    std::size_t launch = launches();
    if (std::ranges::none_of(impl_->commits, [&](const ProgramImpl::Copy& copy) { return is_there(copy.to); })) {
      launch = impl_->launches.size();
      while (launch > 0 && !writes(launch - 1)) --launch;
    }
    until = std::max(until, launch);
  }
  return until;
}

std::size_t Program::launches_until_read(std::span<const std::string> variables) const {
  std::set<ValueId> wanted;
  for (const std::string& name : variables) {
    if (const auto found = impl_->names.find(name); found != impl_->names.end()) wanted.insert(found->second);
  }
  const auto reads = [&](std::size_t node) {
    return std::ranges::any_of(impl_->lowered.nodes[node].inputs,
                               [&](ValueId id) { return wanted.contains(impl_->lowered.root(id)); });
  };
  return static_cast<std::size_t>(std::ranges::find_if(impl_->launch_nodes, reads) - impl_->launch_nodes.begin());
}

void Program::write(const std::string& input, const Tensor& value) {
  const Device::Use use(impl_->device());
  const Operand operand = this->input(input);
  const TensorSpec& spec = impl_->lowered.value(impl_->names.at(input)).spec;
  CONCORD_CHECK(spec == value.spec(), ShapeError, "input '{}' is {}, got {}", input, spec.str(), value.spec().str());
  CONCORD_CHECK(value.bytes().size() == spec.bytes(), ArgumentError,
                "input '{}' gets an empty tensor: it was moved from", input);
  impl_->device().write(*operand.buffer, operand.offset, value.bytes());
}

bool Program::has_input(const std::string& name) const {
  const auto found = impl_->names.find(name);
  return found != impl_->names.end() && impl_->lowered.value(found->second).kind == LoweredValue::Kind::input;
}

Operand Program::input(const std::string& name) const {
  const auto found = impl_->names.find(name);
  CONCORD_CHECK(found != impl_->names.end() && impl_->lowered.value(found->second).kind == LoweredValue::Kind::input,
                ArgumentError, "the program has no input '{}'", name);
  return impl_->operands[static_cast<std::size_t>(found->second)];
}

std::optional<Operand> Program::output(const std::string& value) const {
  const auto found = impl_->names.find(value);
  CONCORD_CHECK(found != impl_->names.end(), ArgumentError, "the program has no output '{}'", value);
  if (impl_->lowered.value(found->second).layout) return std::nullopt;
  return impl_->operands[static_cast<std::size_t>(found->second)];
}

Tensor Program::read(const std::string& value) const {
  const auto found = impl_->names.find(value);
  CONCORD_CHECK(found != impl_->names.end(), ArgumentError,
                "the value '{}' is not readable: it is not an output of the program{}", value,
                impl_->retains_all ? "" : " (compile with Retain::all to read every value)");
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
