// Formulas that are computed as their operand is written, although others read it too: it is not read again.
#include <algorithm>
#include <optional>

#include "concord/compile/rearranged.hpp"
#include "concord/ops/appended.hpp"

namespace concord {
namespace {

class Appending {
 public:
  Appending(Lowered& program, Device& device, Precision precision)
      : program_(program), device_(device), precision_(precision), producer_(program.values.size(), -1) {
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      for (const ValueId id : program.nodes[n].outputs) producer_[static_cast<std::size_t>(id)] = static_cast<int>(n);
    }
  }

  void run() {
    std::vector<bool> gone(program_.nodes.size(), false);
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) gone[n] = append(n);
    std::size_t n = 0;
    std::erase_if(program_.nodes, [&](const LoweredNode&) { return gone[n++]; });
  }

 private:
  /// The node that makes the value; -1 for inputs and variables.
  [[nodiscard]] int producer(ValueId id) const { return producer_[static_cast<std::size_t>(program_.root(id))]; }

  /// Whether node n may be computed where the `base` stands that makes `id`.
  [[nodiscard]] bool may_follow(std::size_t n, ValueId id, int base) const {
    constexpr int kMostApart = 8;  // the result waits for its readers in memory
    const LoweredNode &formula = program_.nodes[n], &first = program_.nodes[static_cast<std::size_t>(base)];
    const LoweredValue &value = program_.value(id), &result = program_.value(formula.outputs[0]);
    const auto is_there = [&](ValueId other) { return other == id || producer(other) < base; };
    return static_cast<int>(n) - base <= kMostApart && first.op && first.kernel && !first.is_alias() &&
           first.outputs == std::vector{id} && !as_pointwise(first) && first.invariant == formula.invariant &&
           first.pass == Pass::forward && formula.pass == Pass::forward && value.spec == result.spec &&
           value.spec.dtype == DType::f32 && same_layout(value.layout, result.layout) &&
           std::ranges::all_of(formula.inputs, is_there);
  }

  /// Makes node n a part of the node before it that makes one of its operands. Returns whether that was possible.
  bool append(std::size_t n) {
    const LoweredNode& formula = program_.nodes[n];
    const auto* const pointwise = as_pointwise(formula);
    if (!pointwise || !formula.kernel || formula.outputs.size() != 1 || pointwise->expression().uses_coordinates()) {
      return false;
    }
    for (const ValueId id : formula.inputs) {
      const int base = producer_[static_cast<std::size_t>(id)];
      if (base < 0 || !may_follow(n, id, base)) continue;
      LoweredNode& node = program_.nodes[static_cast<std::size_t>(base)];
      auto [expression, others] = with_first(formula, *pointwise, id);
      LoweredNode joined = node;
      joined.op = std::make_shared<const ops::Appended>(node.op, node.inputs.size(), std::move(expression),
                                                        joined_label(node.op->name(), pointwise->name()));
      joined.inputs.insert(joined.inputs.end(), others.begin(), others.end());
      joined.outputs.push_back(formula.outputs[0]);
      KernelRequest request{
          joined.op.get(), program_.specs(joined.inputs), {}, program_.specs(joined.outputs), precision_};
      for (const ValueId input : joined.inputs) request.input_layouts.push_back(program_.value(input).layout);
      joined.kernel = device_.prepare_appended(request);
      if (joined.kernel == nullptr) continue;
      producer_[static_cast<std::size_t>(formula.outputs[0])] = base;
      node = std::move(joined);
      return true;
    }
    return false;
  }

  Lowered& program_;
  Device& device_;
  Precision precision_;
  std::vector<int> producer_;
};

}  // namespace

void append_formulas(Lowered& program, Device& device, Precision precision) {
  Appending(program, device, precision).run();
}

}  // namespace concord
