// Places of nodes, and what crosses the borders between stages.
#include "concord/graph/stages.hpp"

#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/graph/operator.hpp"

namespace concord {
namespace {

constexpr std::int32_t kNowhereYet = std::numeric_limits<std::int32_t>::max();

/// Whether a variable belongs to a part of the network: not to the training as a whole, and no constant.
bool is_of_network(const Graph& graph, const Variable& variable) {
  if (!variable.of.empty() || variable.role == VariableRole::parameter) return true;
  if (variable.role != VariableRole::own) return false;
  return variable.trainable || std::ranges::any_of(graph.assignments(), [&](const Assignment& assignment) {
           return assignment.variable.node().variable.get() == &variable;
         });
}

}  // namespace

ForwardOrder::ForwardOrder(const Graph& graph)
    : graph_(graph), places_(static_cast<std::size_t>(graph.size()), kAnywhere) {
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.variable || !is_of_network(graph, *node.variable)) continue;
    // What an update makes for one node is where that node is.
    const bool is_for_node = node.pass == Pass::update && node.gradient_of >= 0;
    places_[static_cast<std::size_t>(id)] = is_for_node ? node.gradient_of : kNowhereYet;
  }
  // The forward pass says where parameters are, and these where the rest is.
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op && node.pass == Pass::forward) places_[static_cast<std::size_t>(id)] = place_of_node(id);
  }
  place_variables();
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op) places_[static_cast<std::size_t>(id)] = place_of_node(id);
  }
}

bool ForwardOrder::is_parameter(const Value& value) const {
  const VariablePtr& variable = value.node().variable;
  return variable && variable->of.empty() && place(value) != kAnywhere;
}

std::int32_t ForwardOrder::place_of_node(std::int32_t id) const {
  const Node& node = graph_.node(id);
  std::int32_t least = kNowhereYet;
  bool is_placed = false;
  for (const Value& input : node.inputs) {
    const std::int32_t of_input = place(input);
    if (of_input == kAnywhere) continue;
    is_placed = true;
    least = std::min(least, of_input);
  }
  if (!is_placed) return kAnywhere;
  if (node.pass == Pass::forward) return id;
  return node.gradient_of >= 0 ? node.gradient_of : least;
}

void ForwardOrder::place_variables() {
  std::map<std::string, std::int32_t> by_name;
  for (std::int32_t id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (node.variable && places_[static_cast<std::size_t>(id)] == kNowhereYet) by_name.emplace(node.name, id);
    if (!node.op || node.pass != Pass::forward || place(id) == kAnywhere) continue;
    for (const Value& input : node.inputs) {
      if (is_parameter(input)) {
        std::int32_t& of_input = places_[static_cast<std::size_t>(input.node_id())];
        of_input = std::min(of_input, id);
      }
    }
  }
  // A state is where its parameter is; what nothing reads is at the beginning.
  for (std::int32_t id = 0; id < graph_.size(); ++id) {
    std::int32_t& own = places_[static_cast<std::size_t>(id)];
    if (!graph_.node(id).variable || own != kNowhereYet) continue;
    const auto parameter = by_name.find(graph_.node(id).variable->of);
    own = parameter == by_name.end() ? kNowhereYet : places_[static_cast<std::size_t>(parameter->second)];
    if (own == kNowhereYet) own = 0;
  }
}

std::vector<ForwardOrder::Reach> ForwardOrder::reaches(std::span<const Value> results, bool with_updates) const {
  std::map<Value, Reach> all;
  const auto note = [&](const Value& value, std::int32_t reader) {
    const std::int32_t made = place(value);
    if (made == kAnywhere || reader == kAnywhere || value.node().variable) return;
    Reach& reach = all.try_emplace(value, Reach{value, made, made, made}).first->second;
    reach.first = std::min(reach.first, reader);
    reach.last = std::max(reach.last, reader);
  };
  for (std::int32_t id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    const bool is_sum_for_variable = node.pass == Pass::gradient && node.gradient_of < 0;
    if (!with_updates && (node.pass == Pass::update || is_sum_for_variable)) continue;
    for (const Value& input : node.inputs) note(input, place(id));
  }
  for (const Assignment& assignment : graph_.assignments()) {
    if (with_updates) note(assignment.value, place(assignment.variable));
  }
  for (const Value& result : results) note(result, graph_.size());
  std::vector<Reach> reaches;
  for (const auto& [value, reach] : all) reaches.push_back(reach);
  return reaches;
}

std::vector<std::int32_t> ForwardOrder::readers_of_parameters() const {
  std::vector<std::int32_t> readers;
  for (std::int32_t id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    const bool reads = node.op && node.pass == Pass::forward &&
                       std::ranges::any_of(node.inputs, [&](const Value& input) { return is_parameter(input); });
    if (reads) readers.push_back(id);
  }
  return readers;
}

Stages::Stages(const ForwardOrder& order, std::vector<std::int32_t> begins, std::span<const Value> results)
    : order_(order), begins_(std::move(begins)), forward_(begins_.size() + 1), backward_(begins_.size() + 1) {
  for (const ForwardOrder::Reach& reach : order.reaches(results)) {
    const int made = stage_at(reach.made), first = stage_at(reach.first), last = stage_at(reach.last);
    CONCORD_CHECK(made == last || reach.value.node().pass == Pass::forward, NotSupported,
                  "'{}' of the backward pass is read by a later stage, so the network cannot be cut there",
                  reach.value.name());
    for (int stage = made; stage < last; ++stage) forward_[static_cast<std::size_t>(stage)].push_back(reach.value);
    for (int stage = first; stage < made; ++stage) backward_[static_cast<std::size_t>(stage)].push_back(reach.value);
  }
  find_guests();
}

int Stages::stage_at(std::int32_t place) const {
  if (place == ForwardOrder::kAnywhere) return kAny;
  return static_cast<int>(std::ranges::upper_bound(begins_, place) - begins_.begin());
}

void Stages::find_guests() {
  const Graph& graph = order_.graph();
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const int reader = stage_at(order_.place(id));
    if (!graph.node(id).op || reader == kAny) continue;
    for (const Value& input : graph.node(id).inputs) {
      if (order_.is_parameter(input) && of(input) != reader) guests_[input.name()].insert(reader);
    }
  }
  for (const Assignment& assignment : graph.assignments()) {
    CONCORD_CHECK(!assignment.is_early || !guests_.contains(assignment.variable.name()), NotSupported,
                  "several stages read '{}', which the forward pass changes: a layer that is used in several places",
                  assignment.variable.name());
  }
}

std::vector<Assignment> Stages::assignments(int stage, bool early) const {
  std::vector<Assignment> own;
  for (const Assignment& assignment : order_.graph().assignments()) {
    if (assignment.is_early != early) continue;
    const int home = of(assignment.variable), made = of(assignment.value);
    const int where = home == kAny ? made : home;
    if (where == stage || where == kAny) own.push_back(assignment);
  }
  return own;
}

}  // namespace concord
