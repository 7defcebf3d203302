// compile(): from a graph to a program. The passes in their order, and the one that asks the device for kernels: in
// execution order, each kernel seeing the layouts that its producers left.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/compile/recompute.hpp"
#include "concord/compile/section.hpp"
#include "concord/compile/tuning.hpp"
#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/log.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"

namespace concord {
namespace {

class LayoutPass {
 public:
  LayoutPass(Lowered& program, Device& device, Precision precision, bool retains_all)
      : program_(program), device_(device), precision_(precision), retains_all_(retains_all) {}

  void run() {
    std::vector<LoweredNode> nodes = std::move(program_.nodes);
    program_.nodes.clear();
    std::set<ValueId> assigned;
    for (const LoweredAssignment& assignment : program_.assignments) assigned.insert(assignment.value);
    for (LoweredNode& whole : nodes) {
      for (LoweredNode& node : retains_all_ ? std::vector{std::move(whole)} : with_copies(program_, std::move(whole))) {
        const std::vector<ValueId> outputs = node.outputs;
        add(std::move(node));
        for (const ValueId id : outputs) {  // at once: what waits for the variable goes on beside the nodes that follow
          if (assigned.contains(id)) in_layout(id, nullptr);
        }
      }
    }
    for (LoweredAssignment& assignment : program_.assignments) {
      assignment.value = in_layout(assignment.value, nullptr);
    }
  }

 private:
  void add(LoweredNode node) {
    if (node.op->is_alias()) {
      const Layout& stored = program_.value(node.inputs[0]).layout;
      alias(std::move(node), stored ? stored->viewed_as(program_.value(node.outputs[0]).spec) : nullptr);
    } else if (const Layout viewed = view_layout(node)) {
      node.is_view = true;
      alias(std::move(node), viewed);
    } else {
      prepare(std::move(node));
    }
  }

  /// The output is the input's bytes in the layout `viewed`, or row-major.
  void alias(LoweredNode node, const Layout& viewed) {
    const ValueId source = viewed ? node.inputs[0] : in_layout(node.inputs[0], nullptr);
    node.inputs[0] = source;
    program_.value(node.outputs[0]).alias_of = source;
    program_.value(node.outputs[0]).layout = viewed;
    program_.nodes.push_back(std::move(node));
  }

  /// The layout of the result of a transposition or slice that moves nothing; null for all other operators.
  [[nodiscard]] Layout view_layout(const LoweredNode& node) const {
    if (retains_all_ || node.inputs.empty()) return nullptr;
    const Layout& stored = program_.value(node.inputs[0]).layout;
    const TensorSpec& result = program_.value(node.outputs[0]).spec;
    if (stored == nullptr) return nullptr;
    if (const auto* const transpose = dynamic_cast<const ops::Transpose*>(node.op.get())) {
      return stored->transposed(transpose->order(), result);
    }
    const auto* const slice = dynamic_cast<const ops::Slice*>(node.op.get());
    const bool is_whole = slice != nullptr && std::ranges::all_of(slice->step(), [](auto step) { return step == 1; });
    return is_whole ? stored->sliced(slice->start(), result) : nullptr;
  }

  /// Whether it combines a variable with values of the same shape, element by element, as updates do.
  [[nodiscard]] bool computes_variable(const LoweredNode& node) const {
    const auto* const fused = dynamic_cast<const ops::Fused*>(node.op.get());
    const bool is_pointwise = dynamic_cast<const ops::Pointwise*>(node.op.get()) != nullptr ||
                              dynamic_cast<const ops::PointwiseGroup*>(node.op.get()) != nullptr;
    if (fused == nullptr && !is_pointwise) return false;
    const auto is_combined = [&](ValueId id) {
      const auto has_its_shape = [&](ValueId output) {
        return program_.value(output).spec.shape == program_.value(id).spec.shape;
      };
      return program_.value(program_.root(id)).kind == LoweredValue::Kind::variable &&
             std::ranges::any_of(node.outputs, has_its_shape);
    };
    const std::size_t first = fused != nullptr ? fused->base_inputs() : 0;
    return std::ranges::any_of(std::span(node.inputs).subspan(first), is_combined);
  }

  void prepare(LoweredNode node) {
    if (program_.is_empty(node)) {  // its operands may be of a size that no kernel takes
      program_.nodes.push_back(std::move(node));
      return;
    }
    KernelRequest request{node.op.get(), program_.specs(node.inputs), {}, program_.specs(node.outputs), precision_};
    request.is_exact = computes_variable(node);
    for (const ValueId id : node.inputs) request.input_layouts.push_back(program_.value(id).layout);
    PreparedKernel prepared = [&] {
      try {
        return device_.prepare(request);
      } catch (const NotSupported& error) {
        throw NotSupported(fmt::format("{} cannot run node '{}': {}", device_.info().name, node.name, error.what()));
      }
    }();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      node.inputs[i] = in_layout(node.inputs[i], prepared.input_layouts[i]);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      program_.value(node.outputs[k]).layout = prepared.output_layouts[k];
    }
    node.kernel = std::move(prepared.kernel);
    node.overwrites = prepared.overwrites;
    program_.nodes.push_back(std::move(node));
  }

  /// Null where the device has none between these two layouts: row-major lies between them.
  [[nodiscard]] std::shared_ptr<Kernel> reorder(const LoweredValue& source, const Layout& wanted) const {
    try {
      return device_.prepare_reorder(source.spec, source.layout, wanted);
    } catch (const NotSupported&) {
      if (!source.layout || !wanted) throw;
      return nullptr;
    }
  }

  // The value in this layout: itself, or a reordered copy made once.
  ValueId in_layout(ValueId id, const Layout& wanted) {
    if (same_layout(program_.value(id).layout, wanted)) return id;
    for (const auto& [layout, copy] : copies_[id]) {
      if (same_layout(layout, wanted)) return copy;
    }
    const LoweredValue& source = program_.value(id);
    std::shared_ptr<Kernel> kernel = reorder(source, wanted);
    if (kernel == nullptr) return in_layout(in_layout(id, nullptr), wanted);
    LoweredValue copy;
    copy.spec = source.spec;
    copy.layout = wanted;
    copy.reorder_of = id;
    copy.name = fmt::format("{} in {}", source.name, wanted ? wanted->str() : "row-major");
    const std::string name = "reorder/" + source.name;
    program_.values.push_back(std::move(copy));
    const auto copied = static_cast<ValueId>(program_.values.size() - 1);
    program_.nodes.push_back({nullptr, name, {id}, {copied}, std::move(kernel)});
    copies_[id].emplace_back(wanted, copied);
    return copied;
  }

  Lowered& program_;
  Device& device_;
  Precision precision_;
  bool retains_all_;
  std::map<ValueId, std::vector<std::pair<Layout, ValueId>>> copies_;
};

}  // namespace

Lowered lower_and_fuse(const Graph& graph, const Section& section, const Device& device,
                       const CompileOptions& options) {
  Lowered lowered = lower_section(graph, section, options.retain == Retain::all);
  const bool fuses = options.fuse && options.retain != Retain::all;
  // With a budget, no operator should need many values at once.
  if (fuses && options.retain == Retain::outputs && options.memory_budget == 0) {
    group_products(lowered, device, options.precision);
  }
  if (options.part == RunPart::before_exchange) hurry_updates(lowered);
  if (fuses) {
    fuse(lowered, device,
         {.precision = options.precision,
          .pauses = !section.before_pause.empty(),
          .folds = options.retain == Retain::outputs && options.memory_budget == 0});
    // What the ranks exchange goes on its way in parts, none of which may wait for all others.
    constexpr std::size_t kMostApart = std::size_t{8} << 20;
    group_updates(lowered, options.part == RunPart::before_exchange ? kMostApart : SIZE_MAX, options.late);
  }
  if (options.retain == Retain::fused) {
    for (const LoweredNode& node : lowered.nodes) {
      for (const ValueId id : node.outputs) lowered.value(id).keep = true;
    }
  }
  return lowered;
}

void group_launches(Lowered& program, Device& device, const Section& section, const CompileOptions& options) {
  find_invariants(program, options.late);
  if (options.memory_budget > 0) return;  // what can be made again is not kept for the whole run
  group_reorders(program, device, options.late);
  // A pause waits for no other operators, and what ranks exchange only for those of at most so many nodes further.
  // Behind the exchange, operators would wait for late variables.
  if (!section.before_pause.empty() || options.part == RunPart::after_exchange) return;
  if (options.fuse) append_formulas(program, device, options.precision);
  constexpr std::size_t kMostApart = 16;
  group_operators(program, device, options.precision, options.part == RunPart::before_exchange ? kMostApart : SIZE_MAX);
}

void choose_layouts(Lowered& program, Device& device, Precision precision, bool retains_all) {
  // Kernels have limits of their own, which a value that fits nowhere exceeds too.
  const bool may_be_halved = precision == Precision::bf16 || precision == Precision::fp16;
  for (const LoweredNode& node : program.nodes) {
    for (const ValueId id : node.outputs) {
      require_allocatable(program.value(id), program.bytes(id) / (may_be_halved ? 2 : 1), device.info());
    }
  }
  LayoutPass(program, device, precision, retains_all).run();
}

namespace {

/// The node before which the program pauses: the first when these values are there.
std::int32_t pause_of(const Lowered& program, std::span<const Value> before) {
  std::set<ValueId> wanted;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const bool is_it = std::ranges::any_of(before, [&](const Value& b) { return b.name() == program.values[v].name; });
    if (is_it) wanted.insert(program.root(static_cast<ValueId>(v)));
  }
  std::int32_t pause = 0;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const bool makes = std::ranges::any_of(program.nodes[n].outputs, [&](ValueId id) { return wanted.contains(id); });
    if (makes) pause = static_cast<std::int32_t>(n) + 1;
  }
  return pause;
}

/// A variable that gets its new value before the pause has it when the run before goes on behind its own pause.
void check_assignments(const Lowered& program, std::int32_t pause) {
  for (const LoweredAssignment& assignment : program.assignments) {
    const ValueId made = program.root(assignment.value), variable = program.root(assignment.variable);
    bool is_early = false, is_read_late = false;
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      const LoweredNode& node = program.nodes[n];
      const auto is = [&](ValueId of) { return [&program, of](ValueId id) { return program.root(id) == of; }; };
      if (std::cmp_less(n, pause)) {
        is_early = is_early || std::ranges::any_of(node.outputs, is(made));
      } else {
        is_read_late = is_read_late || std::ranges::any_of(node.inputs, is(variable));
      }
    }
    CONCORD_CHECK(!is_early || !is_read_late, NotSupported,
                  "the forward pass changes '{}', which the backward pass reads: runs of this step cannot overlap",
                  program.value(assignment.variable).name);
  }
}

std::unique_ptr<ProgramImpl> compiled(const Graph& graph, const Section& section, const VariablesPtr& variables,
                                      const CompileOptions& options) {
  const timeline::Span span("compile");
  CONCORD_CHECK(options.memory_budget == 0 || options.retain == Retain::outputs, ArgumentError,
                "a memory budget cannot be combined with retains_all or Retain::fused");
  auto program = std::make_unique<ProgramImpl>();
  program->variables = variables;
  program->retains_all = options.retain != Retain::outputs;
  program->lowered = lower_and_fuse(graph, section, variables->device(), options);
  const std::vector<std::string>& known = variables->device().info().precisions;
  if (std::ranges::find(known, name_of(options.precision)) == known.end()) {
    log(LogLevel::info, fmt::format("{} has no matrix cores for {}: matrix multiplications may use fp32",
                                    variables->device().info().name, name_of(options.precision)));
  }
  if (const double seconds = tuning_seconds(options); seconds > 0) {
    const timeline::Span tuning("tune");
    tune_at_first_use(program->lowered, variables->device(), options.precision, seconds);
  }
  {
    const timeline::Span kernels("prepare kernels");
    choose_layouts(program->lowered, variables->device(), options.precision, program->retains_all);
  }
  if (!program->retains_all) group_launches(program->lowered, variables->device(), section, options);
  if (options.memory_budget > 0) {
    const timeline::Span recomputation("recompute");
    recompute(program->lowered, options.memory_budget, variables->device().info());
  }
  const MemoryPlan plan = plan_memory(program->lowered, program->retains_all);
  if (!section.before_pause.empty()) {
    const std::int32_t pause = pause_of(program->lowered, section.before_pause);
    check_assignments(program->lowered, pause);
    program->pause = ProgramImpl::Pause{pause};
  }
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
  CONCORD_CHECK(variables, ArgumentError, "compile needs Variables: std::make_shared<Variables>(device, seed)");
  for (const Value& output : outputs) graph.require_own(output, "an output of the program");
  const Device::Use use(variables->device());
  return with_host_memory("compiling a program", [&] {
    return Program(compiled(graph, section_of(graph, outputs, options), variables, options));
  });
}

Program compile_section(const Graph& graph, const Section& section, const VariablesPtr& variables,
                        const CompileOptions& options) {
  const Device::Use use(variables->device());
  return with_host_memory("compiling a program", [&] { return Program(compiled(graph, section, variables, options)); });
}

Program compile(const Graph& graph, std::initializer_list<Value> outputs, const VariablesPtr& variables,
                const CompileOptions& options) {
  return compile(graph, std::span(outputs.begin(), outputs.size()), variables, options);
}

Program compile(const Graph& graph, const Value& output, const VariablesPtr& variables, const CompileOptions& options) {
  return compile(graph, std::span(&output, 1), variables, options);
}

}  // namespace concord
