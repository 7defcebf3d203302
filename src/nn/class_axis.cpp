// The dimension of the classes, by the operators of a loss: from where it normalises back to the network's outputs.
#include "concord/nn/class_axis.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::loss {
namespace {

using Axis = std::optional<std::size_t>;

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t all = 1;
  for (const std::int64_t dim : dims) all *= dim;
  return all;
}

/// The dimension of a reshape's src that dst has as `axis`: as long, and as much before it.
Axis before_reshape(const Shape& src, const Shape& dst, std::size_t axis) {
  const std::int64_t before = product(dst.dims().first(axis));
  for (std::size_t i = src.rank(); i-- > 0;) {
    if (src.dims()[i] == dst.dims()[axis] && product(src.dims().first(i)) == before) return i;
  }
  return {};
}

/// Finds the dimension of `outputs` that a value computed of it has as one of its own.
class Origin {
 public:
  explicit Origin(Value outputs) : outputs_(outputs) {}

  Axis of(Value value, std::size_t axis) {
    if (value == outputs_) return axis;
    if (value.node_id() < outputs_.node_id() || !seen_.insert({value, axis}).second) return {};
    const Node& node = value.node();
    const Operator* const op = node.op.get();
    if (op == nullptr) return {};
    if (const auto* transpose = dynamic_cast<const ops::Transpose*>(op)) {
      return of(node.inputs[0], transpose->order()[axis]);
    }
    if (dynamic_cast<const ops::Reshape*>(op) != nullptr) {
      const Axis src = before_reshape(node.inputs[0].shape(), value.shape(), axis);
      return src ? of(node.inputs[0], *src) : Axis();
    }
    if (dynamic_cast<const ops::Slice*>(op) != nullptr || dynamic_cast<const ops::Softmax*>(op) != nullptr) {
      return of(node.inputs[0], axis);
    }
    if (dynamic_cast<const ops::Pointwise*>(op) == nullptr) return {};
    for (const Value& input : node.inputs) {
      if (input.shape() != value.shape()) continue;
      if (const Axis found = of(input, axis)) return found;
    }
    return {};
  }

 private:
  Value outputs_;
  std::set<std::pair<Value, std::size_t>> seen_;
};

/// The dimension of a node's first input that holds classes, where it compares them.
Axis compared_axis(const Node& node) {
  if (const auto* softmax = dynamic_cast<const ops::Softmax*>(node.op.get())) return softmax->axis();
  const bool is_chosen = dynamic_cast<const ops::Pointwise*>(node.op.get()) != nullptr && node.op->name() == kChosen;
  const bool is_loss = is_chosen || dynamic_cast<const ops::CrossEntropy*>(node.op.get()) != nullptr;
  return is_loss && node.inputs[0].shape().rank() == 2 ? Axis(1) : Axis();
}

/// All dimensions of `outputs` that the loss compares classes along.
std::set<std::size_t> compared_axes(Value outputs, Value loss) {
  std::set<std::size_t> axes;
  if (!outputs.node().op) return axes;
  const Graph& graph = loss.graph();
  std::vector<bool> needed(static_cast<std::size_t>(graph.size()));
  needed[static_cast<std::size_t>(loss.node_id())] = true;
  for (std::int32_t id = loss.node_id(); id > outputs.node_id(); --id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph.node(id);
    for (const Value& input : node.inputs) needed[static_cast<std::size_t>(input.node_id())] = true;
    const Axis compared = node.op ? compared_axis(node) : Axis();
    if (!compared) continue;
    if (const Axis axis = Origin(outputs).of(node.inputs[0], *compared)) axes.insert(*axis);
  }
  return axes;
}

}  // namespace

std::optional<std::size_t> class_axis(Value outputs, const Shape& labels, Value loss) {
  std::vector<std::size_t> fitting;
  for (std::size_t axis = 1; axis < outputs.shape().rank(); ++axis) {
    std::vector<std::int64_t> places(outputs.shape().dims().begin(), outputs.shape().dims().end());
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(axis));
    if (Shape(std::move(places)) == labels) fitting.push_back(axis);
  }
  if (fitting.size() < 2) return fitting.empty() ? Axis() : fitting[0];
  const std::set<std::size_t> compared = compared_axes(outputs, loss);
  std::erase_if(fitting, [&](std::size_t axis) { return !compared.contains(axis); });
  return fitting.size() == 1 ? Axis(fitting[0]) : Axis();
}

}  // namespace concord::loss
