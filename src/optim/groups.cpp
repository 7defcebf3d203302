// Groups: matching names and dividing the parameters of a graph.
#include "concord/optim/groups.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/recurrent.hpp"

namespace concord::optim {
namespace {

/// One place of a pattern: any number of characters, any one, or this one.
struct Token {
  enum class Kind : std::uint8_t { many, one, exact } kind;
  std::string_view character;
};

std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(utf8_length(text), 1));
}

std::vector<Token> tokens_of(std::string_view pattern) {
  std::vector<Token> tokens;
  while (!pattern.empty()) {
    const bool is_escaped = pattern[0] == '\\' && pattern.size() > 1;
    if (is_escaped) pattern.remove_prefix(1);
    const std::string_view character = first_character(pattern);
    const Token::Kind kind = is_escaped         ? Token::Kind::exact
                             : character == "*" ? Token::Kind::many
                             : character == "?" ? Token::Kind::one
                                                : Token::Kind::exact;
    tokens.push_back({kind, character});
    pattern.remove_prefix(character.size());
  }
  return tokens;
}

/// Greedy with one place to come back to: the last '*'.
bool matches(std::string_view pattern, std::string_view name) {
  const std::vector<Token> tokens = tokens_of(pattern);
  std::size_t p = 0, star = tokens.size();
  std::string_view resumed;
  const auto is = [&](Token::Kind kind) { return p < tokens.size() && tokens[p].kind == kind; };
  while (!name.empty()) {
    const std::string_view character = first_character(name);
    if (is(Token::Kind::many)) {
      star = p++;
      resumed = name;
    } else if (is(Token::Kind::one) || (is(Token::Kind::exact) && tokens[p].character == character)) {
      ++p;
      name.remove_prefix(character.size());
    } else if (star < tokens.size()) {
      p = star + 1;
      resumed.remove_prefix(first_character(resumed).size());
      name = resumed;
    } else {
      return false;
    }
  }
  while (is(Token::Kind::many)) ++p;
  return p == tokens.size();
}

template <class Op>
bool is_a(const Node& node) {
  return dynamic_cast<const Op*>(node.op.get()) != nullptr;
}

Partition::Part part_of(const Group& group, const Optimizer& common) {
  const Optimizer& chosen = group.optimizer ? *group.optimizer : common;
  Partition::Part part;
  part.rule = group.weight_decay ? chosen.with_weight_decay(*group.weight_decay).rule() : chosen.rule();
  part.rate_factor = group.rate_factor;
  if (group.optimizer) {
    CONCORD_CHECK(common.rule().lr > 0, ArgumentError,
                  "a group's optimizer '{}' follows the rate of '{}', which must not be 0", part.rule.name,
                  common.rule().name);
    part.rate_factor *= part.rule.lr / common.rule().lr;
  }
  return part;
}

}  // namespace

Match named(std::string pattern) {
  return [pattern = std::move(pattern)](const Variable& variable) { return matches(pattern, variable.name); };
}

Match vectors() {
  return [](const Variable& variable) { return variable.spec.shape.rank() <= 1; };
}

Match all_but_hidden_matrices(const Graph& network) {
  std::set<std::string> multiplied, tables;
  std::string last;
  // The parameter that each node is a view of: one may be reshaped, sliced or transposed before it is used.
  std::vector<const Variable*> origins(static_cast<std::size_t>(network.size()), nullptr);
  for (std::int32_t id = 0; id < network.size(); ++id) {
    const Node& node = network.node(id);
    const Variable*& own = origins[static_cast<std::size_t>(id)];
    if (node.variable && node.variable->trainable && node.variable->spec.shape.rank() >= 2) own = node.variable.get();
    const auto origin = [&](const Value& input) { return origins[static_cast<std::size_t>(input.node_id())]; };
    if (node.inputs.size() == 1) own = origin(node.inputs[0]);
    const bool multiplies = is_a<ops::Matmul>(node) || is_a<ops::ConvFamily>(node) || is_a<ops::RecurrentFamily>(node);
    for (const Value& input : node.inputs) {
      if (origin(input) == nullptr) continue;
      if (is_a<ops::Gather>(node)) tables.insert(origin(input)->name);
      if (multiplies) multiplied.insert(last = origin(input)->name);
    }
  }
  for (const std::string& table : tables) multiplied.erase(table);
  multiplied.erase(last);
  return [hidden = std::move(multiplied)](const Variable& variable) { return !hidden.contains(variable.name); };
}

bool is_trained(const Graph& graph, const Variable& variable, const std::vector<Group>& groups) {
  const auto group = std::ranges::find_if(groups, [&](const Group& g) { return g.match && g.match(variable); });
  return variable.trainable && !graph.is_frozen(variable) && (group == groups.end() || !group->frozen);
}

Partition partition(Graph& graph, const Optimizer& optimizer, const std::vector<Group>& groups) {
  const auto require_rule = [](const Rule& rule) {
    CONCORD_CHECK(rule.update || rule.for_shape, ArgumentError,
                  "the optimizer '{}' has no update: it was moved from, or its rule() returns none", rule.name);
  };
  require_rule(optimizer.rule());
  std::vector<Partition::Part> parts;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    CONCORD_CHECK(groups[g].match, ArgumentError, "group {} of parameters has no match", g);
    CONCORD_CHECK(groups[g].rate_factor >= 0 && std::isfinite(groups[g].rate_factor), ArgumentError,
                  "group {} of parameters: the rate factor {} must be finite and not negative", g,
                  groups[g].rate_factor);
    parts.push_back(part_of(groups[g], optimizer));
    require_rule(parts.back().rule);
  }
  parts.push_back({optimizer.rule(), 1, {}});
  std::vector<bool> matched(parts.size(), false);
  for (const VariablePtr& variable : graph.variables()) {
    if (!variable->trainable) continue;
    const auto group = std::ranges::find_if(groups, [&](const Group& g) { return g.match(*variable); });
    const auto number = static_cast<std::size_t>(group - groups.begin());
    matched[number] = true;
    if (!graph.is_frozen(*variable)) parts[number].weights.push_back(graph.variable(variable));
  }
  Partition result;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    CONCORD_CHECK(g == groups.size() || matched[g], ArgumentError,
                  "group {} of parameters is empty: no name matches, or the parameters are in an earlier group", g);
    const bool frozen = g < groups.size() && groups[g].frozen;
    if (!frozen && !parts[g].weights.empty()) result.parts.push_back(std::move(parts[g]));
  }
  CONCORD_CHECK(!result.parts.empty(), ArgumentError, "the graph has no trainable variable{}",
                groups.empty() ? " that is not frozen" : " outside frozen groups and modules");
  return result;
}

}  // namespace concord::optim
