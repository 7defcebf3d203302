// Reverse-mode differentiation: one walk from the loss back to what is wanted.
#include "concord/ops/gradient.hpp"

#include <algorithm>
#include <map>

#include "concord/core/check.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/pointwise.hpp"

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

}  // namespace

std::vector<Value> gradient(Value loss, std::span<const Value> wrt) {
  CONCORD_CHECK(loss && loss.dtype() == DType::f32 && loss.shape().elements() == 1, ShapeError,
                "the gradient is taken of one f32 number, got {}", loss ? loss.spec().str() : "an empty value");
  Graph& graph = loss.graph();
  const std::vector<bool> depends = depends_on(graph, wrt, loss.node_id());
  std::map<Value, Value> diff;  // value → gradient of the loss with respect to it
  graph.push_scope("grad");
  diff.emplace(loss, full(graph, loss.shape(), 1.0F));
  graph.pop_scope();

  for (std::int32_t id = loss.node_id(); id >= 0; --id) {
    const Node& node = graph.node(id);
    if (!node.op || !depends[static_cast<std::size_t>(id)]) continue;
    std::vector<Value> diff_dst(node.outputs.size());
    bool reached = false;
    for (std::size_t k = 0; k < diff_dst.size(); ++k) {
      const auto found = diff.find(Value(&graph, id, static_cast<std::int32_t>(k)));
      if (found == diff.end()) continue;
      diff_dst[k] = found->second;
      reached = true;
    }
    if (!reached) continue;
    std::vector<bool> wanted;
    for (const Value& input : node.inputs) {
      wanted.push_back(depends[static_cast<std::size_t>(input.node_id())] && input.dtype() == DType::f32);
    }
    if (std::ranges::find(wanted, true) == wanted.end()) continue;
    graph.push_scope("grad/" + node.name);
    const std::vector<Value> diff_src = node.op->gradient(node, diff_dst, wanted);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!wanted[i] || !diff_src[i]) continue;
      Value& total = diff[node.inputs[i]];
      total = total ? total + diff_src[i] : diff_src[i];
    }
    graph.pop_scope();
  }

  std::vector<Value> result;
  graph.push_scope("grad");
  for (const Value& value : wrt) {
    const auto found = diff.find(value);
    result.push_back(found != diff.end() ? found->second : full(graph, value.shape(), 0.0F));
  }
  graph.pop_scope();
  return result;
}

}  // namespace concord
