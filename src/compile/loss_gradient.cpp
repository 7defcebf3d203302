// Joining of a cross-entropy with the formula of its logits' gradient, which otherwise reads the logits again.
#include "concord/ops/loss_gradient.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "concord/compile/lowered.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord {
namespace {

using Joined = ops::CrossEntropyWithGradient;

/// A formula of the logits and of what cross-entropy found of their rows, and what it reads besides.
struct Gradient {
  std::size_t node;
  Expression slope;
  std::vector<ValueId> others;
};

bool broadcasts_to(const Shape& shape, const Shape& whole) {
  return shape.elements() == 1 ||
         (shape.rank() == 2 && shape[0] == whole[0] && (shape[1] == 1 || shape[1] == whole[1]));
}

/// The node as the slope at the logits of `loss`; nothing if it is something else.
std::optional<Gradient> gradient_at(const Lowered& program, const LoweredNode& loss, std::size_t n) {
  const LoweredNode& node = program.nodes[n];
  const auto* formula = dynamic_cast<const ops::Pointwise*>(node.op.get());
  if (formula == nullptr || node.outputs.size() != 1) return {};
  const TensorSpec& logits = program.value(loss.inputs[0]).spec;
  if (program.value(node.outputs[0]).spec != logits) return {};
  const Shape column{logits.shape[0], 1};
  const bool knows_coordinates = std::ranges::all_of(formula->expression().code(), [](const auto& instruction) {
    return instruction.function != ScalarFunction::coordinate || instruction.index == 0;
  });
  if (!knows_coordinates) return {};
  std::vector<ValueId> others;
  std::vector<Scalar> slots;
  bool reads_total = false;
  for (const ValueId id : node.inputs) {
    const TensorSpec& spec = program.value(id).spec;
    const auto is = [&](ValueId of) { return program.root(id) == program.root(of); };
    if (is(loss.inputs[0]) && spec == logits) {
      slots.push_back(scalar::input(0));
    } else if (is(loss.outputs[1]) && spec.shape == column) {
      slots.push_back(scalar::input(1));
    } else if (is(loss.outputs[2]) && spec.shape == column) {
      slots.push_back(scalar::input(2));
      reads_total = true;
    } else {
      if (!broadcasts_to(spec.shape, logits.shape)) return {};
      slots.push_back(scalar::input(Joined::kSlopeInputs + static_cast<int>(others.size())));
      others.push_back(id);
    }
  }
  if (!reads_total) return {};
  Expression slope({substitute(formula->expression().formulas()[0], slots)},
                   Joined::kSlopeInputs + static_cast<int>(others.size()));
  return Gradient{n, std::move(slope), std::move(others)};
}

/// The nodes behind `loss` that make what `gradient` reads besides; nothing if one of them waits for the loss.
std::optional<std::vector<std::size_t>> makers_behind(const Lowered& program, std::size_t loss,
                                                      const Gradient& gradient) {
  std::set<ValueId> needed(gradient.others.begin(), gradient.others.end());
  std::vector<std::size_t> makers;
  for (std::size_t n = gradient.node; n-- > loss + 1;) {
    const LoweredNode& node = program.nodes[n];
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return needed.contains(id); })) continue;
    needed.insert(node.inputs.begin(), node.inputs.end());
    makers.push_back(n);
  }
  const auto is_needed = [&](ValueId id) { return needed.contains(id); };
  if (std::ranges::any_of(program.nodes[loss].outputs, is_needed)) return {};
  std::ranges::reverse(makers);
  return makers;
}

/// Puts the makers in front of the loss, and makes one node of the loss and its gradient.
void join(Lowered& program, std::size_t loss, const Gradient& gradient, const std::vector<std::size_t>& makers) {
  std::vector<LoweredNode>& nodes = program.nodes;
  LoweredNode joined = nodes[loss];
  joined.op = std::make_shared<const Joined>(dynamic_cast<const ops::CrossEntropy&>(*joined.op), gradient.slope);
  joined.inputs.insert(joined.inputs.end(), gradient.others.begin(), gradient.others.end());
  joined.outputs.push_back(nodes[gradient.node].outputs[0]);
  std::vector<LoweredNode> moved;
  for (const std::size_t n : makers) moved.push_back(nodes[n]);
  moved.push_back(std::move(joined));
  std::size_t n = 0;
  std::erase_if(nodes, [&](const LoweredNode&) {
    const std::size_t at = n++;
    return at == loss || at == gradient.node || std::ranges::binary_search(makers, at);
  });
  nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(loss), std::make_move_iterator(moved.begin()),
               std::make_move_iterator(moved.end()));
}

}  // namespace

void join_loss_gradients(Lowered& program, const Device& device) {
  if (!device.has_joined_operators()) return;
  for (std::size_t loss = 0; loss < program.nodes.size(); ++loss) {
    if (dynamic_cast<const ops::CrossEntropy*>(program.nodes[loss].op.get()) == nullptr) continue;
    for (std::size_t n = loss + 1; n < program.nodes.size(); ++n) {
      const std::optional<Gradient> gradient = gradient_at(program, program.nodes[loss], n);
      if (!gradient) continue;
      if (const auto makers = makers_behind(program, loss, *gradient)) {
        join(program, loss, *gradient, *makers);
        loss += makers->size();
        break;
      }
    }
  }
}

}  // namespace concord
