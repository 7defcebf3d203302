// Reverse-mode differentiation: one walk from the loss back to what is wanted.
#include "concord/ops/gradient.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient_parts.hpp"
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

/// Throws if the loss depends on one of `wrt` in a function that computes it along.
void check_are_apart(const Graph& graph, std::span<const Value> wrt, std::int32_t last) {
  std::vector<bool> is_used(static_cast<std::size_t>(last) + 1, false);
  is_used[static_cast<std::size_t>(last)] = true;
  for (std::int32_t id = last; id >= 0; --id) {
    if (!is_used[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph.node(id);
    for (const Value& input : node.inputs) is_used[static_cast<std::size_t>(input.node_id())] = true;
    for (const Value& value : node.joined) {
      CONCORD_CHECK(std::ranges::find(wrt, value) == wrt.end(), NotSupported,
                    "'{}' computes '{}' as a part of one function, which has no gradient of its parts; take the "
                    "gradient of its argument '{}'",
                    node.name, value.name(), node.inputs[0].name());
    }
  }
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

/// Parts of the gradient of each variable, by number. All else has part 0.
class Diffs {
 public:
  explicit Diffs(const PartOfReader& part_of) : part_of_(part_of) {}

  /// What `reader` adds to the gradient of a value that it reads.
  void add(Value value, std::int32_t reader, Value diff) {
    if (!value.node().variable) return all_[{value, 0}].add(diff);
    const PassScope of_no_node(value.graph(), Pass::gradient);  // the sums of a variable's gradients
    all_[{value, part_of_ ? part_of_(reader) : 0}].add(diff);
  }
  /// Empty where nothing was added.
  [[nodiscard]] Value sum(Value value) {
    const auto found = all_.find({value, 0});
    return found == all_.end() ? Value{} : found->second.sum();
  }
  [[nodiscard]] std::map<int, Value> parts(Value value) {
    std::map<int, Value> parts;
    const auto begin = all_.lower_bound({value, std::numeric_limits<int>::min()});
    for (auto at = begin; at != all_.end() && at->first.first == value; ++at) {
      parts.emplace(at->first.second, at->second.sum());
    }
    return parts;
  }

 private:
  const PartOfReader& part_of_;
  std::map<std::pair<Value, int>, Summands> all_;
};

std::vector<std::map<int, Value>> gradients(Value loss, std::span<const Value> wrt, const PartOfReader& part_of);

}  // namespace

std::vector<Value> gradient(Value loss, std::initializer_list<Value> wrt) {
  return gradient(loss, std::span(wrt.begin(), wrt.size()));
}

std::vector<Value> gradient(Value loss, std::span<const Value> wrt) {
  return with_host_memory("taking gradients", [&] {
    const std::vector<std::map<int, Value>> parts = gradients(loss, wrt, nullptr);
    const PassScope pass(loss.graph(), Pass::gradient);
    const Scope scope(loss.graph(), "grad");
    std::vector<Value> result;
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      result.push_back(parts[i].empty() ? full(loss.graph(), wrt[i].shape(), 0.0F) : parts[i].at(0));
    }
    return result;
  });
}

std::vector<std::map<int, Value>> gradient_in_parts(Value loss, std::span<const Value> wrt,
                                                    const PartOfReader& part_of) {
  return with_host_memory("taking gradients", [&] { return gradients(loss, wrt, part_of); });
}

namespace {

std::vector<std::map<int, Value>> gradients(Value loss, std::span<const Value> wrt, const PartOfReader& part_of) {
  CONCORD_CHECK(loss && loss.dtype() == DType::f32 && loss.shape().elements() == 1, ShapeError,
                "a gradient needs one f32 number, got {}", loss ? loss.spec().str() : "an empty value");
  Graph& graph = loss.graph();
  for (const Value& value : wrt) graph.require_own(value, "a value of wrt");
  const PassScope pass(graph, Pass::gradient);
  check_are_apart(graph, wrt, loss.node_id());
  const std::vector<bool> depends = depends_on(graph, wrt, loss.node_id());
  Diffs diffs(part_of);
  {
    const PassScope of_loss(graph, Pass::gradient, loss.node_id());
    const Scope scope(graph, "grad");
    diffs.add(loss, loss.node_id(), full(graph, loss.shape(), 1.0F));
  }

  for (std::int32_t id = loss.node_id(); id >= 0; --id) {
    const Node& node = graph.node(id);
    if (!node.op || !depends[static_cast<std::size_t>(id)]) continue;
    const PassScope of_node(graph, Pass::gradient, id);
    std::vector<Value> diff_dst(node.outputs.size());
    bool reached = false;
    for (std::size_t k = 0; k < diff_dst.size(); ++k) {
      const Scope scope(graph, "grad/" + node.name);
      diff_dst[k] = diffs.sum(Value(&graph, id, static_cast<std::int32_t>(k)));
      reached = reached || diff_dst[k];
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
      if (wanted[i] && diff_src[i]) diffs.add(node.inputs[i], id, diff_src[i]);
    }
  }

  std::vector<std::map<int, Value>> result;
  const Scope scope(graph, "grad");
  for (const Value& value : wrt) result.push_back(diffs.parts(value));
  return result;
}

}  // namespace
}  // namespace concord
