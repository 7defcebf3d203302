// The part of a training step that runs before the exchange between ranks: what each rank adds. Internal to the
// library.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "concord/graph/graph.hpp"

namespace concord::optim {

/// Adds a variable f32 [n] that is summed over the runs and ranks of an update, and returns it: after the exchange it
/// has the sums of `numbers`, n values of one element.
[[nodiscard]] Value exchange_numbers(Graph& graph, const std::string& name, std::span<const Value> numbers,
                                     int accumulate);
/// Element i of a variable of exchange_numbers, of rank 0.
[[nodiscard]] Value exchanged_number(Value numbers, std::int64_t i);

/// A variable that ranks sum, and what this rank adds, with its earlier runs.
struct Exchanged {
  Value variable, own;
};
/// Adds a variable "exchange.<parameter>" for the gradient of one term of the loss: after the exchange it has the sum
/// over runs and ranks. `part` is what this run adds.
[[nodiscard]] Exchanged exchange_gradient(Value weight, Value part, std::size_t term, int accumulate);

/// The parameters whose gradients are complete last, as indices: those that the forward pass has first, of 4 MiB or
/// more. None where all gradients are so few that they travel at once. An update need not wait for the sums of these
/// (exchange_bad), which no computation hides.
[[nodiscard]] std::vector<std::size_t> last_gradients(const std::vector<Value>& weights);
/// Adds a variable called `name`, f32 [1], and returns it as rank 0: after the exchange it counts the ranks on which an
/// element of `own`, the last gradients, is not finite; of none it is 0. What is exchanged before it, but for numbers,
/// are these gradients; the others are exchanged behind it. Their sums are not checked: finite numbers whose sum is
/// beyond the range of fp32 spoil the parameter.
[[nodiscard]] Value exchange_bad(Graph& graph, std::vector<Value> own, std::vector<std::string> names,
                                 const std::string& name);

/// As exchange_numbers for a step in stages: `variable`, named `name`, gathers the numbers of the runs of an update.
/// The last stage adds to it, and the host gives its sums to the others.
[[nodiscard]] Value gather_numbers(Graph& graph, const std::string& name, std::span<const Value> numbers);
/// As exchange_gradient for a step in stages: adds a variable `name` for the sum over the runs of an update, and
/// returns it. The update must end with 0 in it.
[[nodiscard]] Value gather_of_stage(const std::string& name, Value weight, Value part);
/// Adds a variable that no checkpoint keeps. `of`: the parameter that it belongs to; empty: none.
[[nodiscard]] Value step_variable(Graph& graph, const std::string& name, const TensorSpec& spec,
                                  const std::string& of = {});

/// Turns assignments of layers, such as running statistics, into early ones. With one run an update they wait in a
/// variable "exchange.<name>" until the step is known to be good, which the returned assignments say; with more, each
/// run needs those of the one before, and the second part of the step assigns nothing new.
[[nodiscard]] std::vector<Assignment> assign_before_exchange(Graph& graph, const std::vector<Assignment>& assignments,
                                                             int accumulate);

}  // namespace concord::optim
