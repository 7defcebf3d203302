// Groups: parameters with their own learning rate, weight decay or optimizer, or frozen ones. minimize uses them.
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

/// Returns whether a trainable variable belongs to a group.
using Match = std::function<bool(const Variable&)>;

/// Matches names: '*' matches any characters, '?' one UTF-8 character; a backslash makes the next character literal.
/// "features.*" matches everything in the module `features`.
[[nodiscard]] Match named(std::string pattern);
/// Matches parameters of rank 0 and 1: biases, and scales and shifts of norms. They usually have no weight decay.
[[nodiscard]] Match vectors();
/// Matches the parameters that Muon is not for: everything except the matrices inside the network. Those are parameters
/// of rank 2 and more in a matrix multiplication, a convolution or a recurrent layer; not embedding tables, and not the
/// last matrix, which gives the outputs. `network` is its graph without a loss. The match works by name, so it applies
/// to other graphs of the network.
[[nodiscard]] Match all_but_hidden_matrices(const Graph& network);

struct Group {
  Match match;
  double rate_factor = 1;                   // factor of the common learning rate
  std::optional<double> weight_decay = {};  // replaces the weight decay of the optimizer
  /// Replaces the common optimizer. Its learning rate follows the schedule in proportion.
  std::optional<Optimizer> optimizer = {};
  bool frozen = false;  // keeps its values: no gradient and no state
};

/// Returns whether `minimize` changes this variable of the graph.
[[nodiscard]] bool is_trained(const Graph& graph, const Variable& variable, const std::vector<Group>& groups);

/// The parameters of a graph, divided by optimizer and learning rate.
struct Partition {
  struct Part {
    Rule rule;
    double rate_factor = 1;  // factor of the common learning rate
    std::vector<Value> weights;
  };
  std::vector<Part> parts;  // the groups in order, then the other parameters; without frozen and empty parts
};

/// Assigns each trainable variable that is not frozen to the first matching group. Throws ArgumentError for a factor
/// that is negative or not finite, for a group that matches no variable (even without freezing), and if nothing is left
/// to train.
[[nodiscard]] Partition partition(Graph& graph, const Optimizer& optimizer, const std::vector<Group>& groups);

}  // namespace optim
}  // namespace concord
