// Groups: parameters with a rate, weight decay or optimizer of their own, or none at all. Used by minimize.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/optim/optimizer.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// Says of a trainable variable whether it belongs to a group.
using Match = std::function<bool(const Variable&)>;

/// By name: '*' stands for any characters, '?' for one (of UTF-8), and a backslash makes the character behind it an
/// ordinary one. "features.*" is all of the module `features`.
[[nodiscard]] Match named(std::string pattern);
/// Parameters of rank 0 and 1: biases, and the scales and shifts of norms, which usually have no weight decay.
[[nodiscard]] Match vectors();
/// What Muon is not for: all but the matrices inside the network. Those are parameters of rank 2 and more that a matrix
/// product, a convolution or a recurrent layer multiplies by; not tables that rows are gathered of (embeddings), nor
/// the last matrix, which gives the outputs. `network` is a graph of it without a loss; the match goes by name and
/// serves other graphs of the same network.
[[nodiscard]] Match all_but_hidden_matrices(const Graph& network);

struct Group {
  Match match;
  double rate_factor = 1;                   // of the common rate, whatever the schedule makes of it
  std::optional<double> weight_decay = {};  // in place of the optimizer's
  /// In place of the common one; its rate follows the schedule in proportion.
  std::optional<Optimizer> optimizer = {};
  bool frozen = false;  // keeps its values: no gradient is computed, no state kept
};

/// Whether `minimize` changes this variable of the graph.
[[nodiscard]] bool is_trained(const Graph& graph, const Variable& variable, const std::vector<Group>& groups);

/// The parameters of a graph by how they are trained.
struct Partition {
  struct Part {
    Rule rule;
    double rate_factor = 1;  // of the common rate
    std::vector<Value> weights;
  };
  std::vector<Part> parts;  // of the groups in order, then those that no group takes; frozen and empty ones left out
};

/// Each trainable variable that is not frozen goes to the first group that matches. Throws ArgumentError for a factor
/// that is negative or not finite, a group that would take no variable even if none were frozen, or when nothing is
/// left to train.
[[nodiscard]] Partition partition(Graph& graph, const Optimizer& optimizer, const std::vector<Group>& groups);

}  // namespace optim
}  // namespace concord
