// Reverse-mode differentiation: one walk from the loss back to what is wanted.
#include "concord/ops/gradient.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/second_gradient.hpp"

namespace concord {
namespace {

// Which nodes lie on a path from `wrt` to the loss.
std::vector<bool> depends_on(const Graph& graph, std::span<const Value> wrt, std::int32_t last) {
  std::vector<bool> depends(static_cast<std::size_t>(last) + 1, false);
  for (const Value& value : wrt) {
    if (value.node_id() <= last) depends[static_cast<std::size_t>(value.node_id())] = true;
  }
  for (std::int32_t id = 0; id <= last; ++id) {
    for (const Value& input : graph.node(id).inputs) {
      if (depends[static_cast<std::size_t>(input.node_id())]) depends[static_cast<std::size_t>(id)] = true;
    }
  }
  return depends;
}

/// A value between zeros along one axis of a larger one: the gradient of a slice.
struct Part {
  Value value;
  std::size_t axis;
  std::int64_t begin;
  [[nodiscard]] std::int64_t end() const { return begin + value.shape().dims()[axis]; }
};
std::optional<Part> part_of(Value padded) {
  const Node& node = padded.graph().node(padded.node_id());
  const auto* const pad = dynamic_cast<const ops::Pad*>(node.op.get());
  if (pad == nullptr || pad->value() != 0) return std::nullopt;
  std::optional<Part> part;
  for (std::size_t axis = 0; axis < padded.shape().rank(); ++axis) {
    if (pad->step()[axis] != 1) return std::nullopt;
    if (node.inputs[0].shape().dims()[axis] == padded.shape().dims()[axis]) continue;
    if (part) return std::nullopt;  // zeros along two axes
    part = Part{node.inputs[0], axis, pad->before()[axis]};
  }
  return part;
}

/// What reaches a value from its uses. Gradients of slices wait until all are there: those that fill an axis one after
/// the other need neither zeros nor sums.
class Summands {
 public:
  void add(Value diff) {
    if (std::optional<Part> part = part_of(diff)) {
      padded_.push_back(diff);
      parts_.push_back(*part);
    } else {
      add_to_total(diff);
    }
  }
  /// Empty where nothing was added.
  [[nodiscard]] Value sum() {
    if (const Value joined = side_by_side()) {
      add_to_total(joined);
    } else {
      for (const Value& diff : padded_) add_to_total(diff);
    }
    padded_.clear();
    parts_.clear();
    return total_;
  }

 private:
  void add_to_total(Value diff) { total_ = total_ ? total_ + diff : diff; }
  [[nodiscard]] Value side_by_side() {
    if (parts_.empty()) return {};
    std::ranges::sort(parts_, {}, &Part::begin);
    const std::size_t axis = parts_.front().axis;
    std::int64_t end = 0;
    std::vector<Value> values;
    for (const Part& part : parts_) {
      if (part.axis != axis || part.begin != end) return {};
      end = part.end();
      values.push_back(part.value);
    }
    const bool fills = end == padded_.front().shape().dims()[axis];
    return fills ? concat(std::move(values), static_cast<std::int64_t>(axis)) : Value{};
  }

  Value total_;
  std::vector<Value> padded_;
  std::vector<Part> parts_;
};

/// By the operator's rule; a NotSupported says what to do instead.
std::vector<Value> gradient_of(const Node& node, std::span<const Value> diff_dst, const std::vector<bool>& wanted) {
  try {
    return node.op->gradient(node, diff_dst, wanted);
  } catch (const NotSupported& error) {
    throw NotSupported(
        fmt::format("{}. A gradient of a gradient? Meanwhile {}", error.what(), ops::instead_of(node.op->name())));
  }
}

std::vector<Value> gradients(Value loss, std::span<const Value> wrt);

}  // namespace

std::vector<Value> gradient(Value loss, std::initializer_list<Value> wrt) {
  return gradient(loss, std::span(wrt.begin(), wrt.size()));
}

std::vector<Value> gradient(Value loss, std::span<const Value> wrt) {
  return with_host_memory("taking gradients", [&] { return gradients(loss, wrt); });
}

namespace {

std::vector<Value> gradients(Value loss, std::span<const Value> wrt) {
  CONCORD_CHECK(loss && loss.dtype() == DType::f32 && loss.shape().elements() == 1, ShapeError,
                "a gradient needs one f32 number, got {}", loss ? loss.spec().str() : "an empty value");
  Graph& graph = loss.graph();
  for (const Value& value : wrt) graph.require_own(value, "a value of wrt");
  const PassScope pass(graph, Pass::gradient);
  const std::vector<bool> depends = depends_on(graph, wrt, loss.node_id());
  std::map<Value, Summands> diff;  // value → gradient of the loss with respect to it
  const auto start = [&] {
    const PassScope of_loss(graph, Pass::gradient, loss.node_id());
    const Scope scope(graph, "grad");
    return full(graph, loss.shape(), 1.0F);
  };
  diff[loss].add(start());

  for (std::int32_t id = loss.node_id(); id >= 0; --id) {
    const Node& node = graph.node(id);
    if (!node.op || !depends[static_cast<std::size_t>(id)]) continue;
    const PassScope of_node(graph, Pass::gradient, id);
    std::vector<Value> diff_dst(node.outputs.size());
    bool reached = false;
    for (std::size_t k = 0; k < diff_dst.size(); ++k) {
      const auto found = diff.find(Value(&graph, id, static_cast<std::int32_t>(k)));
      if (found == diff.end()) continue;
      const Scope scope(graph, "grad/" + node.name);
      diff_dst[k] = found->second.sum();
      reached = true;
    }
    if (!reached) continue;
    std::vector<bool> wanted;
    for (const Value& input : node.inputs) {
      wanted.push_back(depends[static_cast<std::size_t>(input.node_id())] && input.dtype() == DType::f32);
    }
    if (std::ranges::find(wanted, true) == wanted.end()) continue;
    const Scope scope(graph, "grad/" + node.name);
    const std::vector<Value> diff_src = gradient_of(node, diff_dst, wanted);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!wanted[i] || !diff_src[i]) continue;
      diff[node.inputs[i]].add(diff_src[i]);
    }
  }

  std::vector<Value> result;
  const Scope scope(graph, "grad");
  for (const Value& value : wrt) {
    const auto found = diff.find(value);
    result.push_back(found != diff.end() ? found->second.sum() : full(graph, value.shape(), 0.0F));
  }
  return result;
}

}  // namespace
}  // namespace concord
