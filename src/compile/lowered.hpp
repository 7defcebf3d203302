// Lowered: a graph on its way to a Program. lower() keeps what is needed, fuse() merges, choose_layouts() prepares
// kernels, plan_memory() finds room. Passes are plain functions; tests/compile runs them without any device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/device/device.hpp"
#include "concord/graph/graph.hpp"
#include "concord/graph/operator.hpp"

namespace concord {

using ValueId = std::int32_t;

struct LoweredValue {
  enum class Kind : std::uint8_t { computed, input, variable };
  Kind kind = Kind::computed;
  TensorSpec spec;
  std::string name;
  VariablePtr variable;     // of a variable
  ValueId alias_of = -1;    // the value whose bytes this is (reshape), or -1
  ValueId reorder_of = -1;  // the value that this is in another layout, or -1
  bool keep = false;        // readable after the run
  Layout layout;            // set by choose_layouts
};

struct LoweredNode {
  std::shared_ptr<const Operator> op;  // null for a reorder of layout
  std::string name;
  std::vector<ValueId> inputs, outputs;
  std::shared_ptr<Kernel> kernel;  // set by choose_layouts; null for an alias and where all outputs are empty
  bool invariant = false;          // set by find_invariants
  bool again = false;              // set by recompute: an earlier node computed the same
  bool is_view = false;            // set by choose_layouts: the layouts make its output the bytes of its input
  bool is_folded = false;          // set by fuse: weights times the factors behind their convolution
  int overwrites = -1;             // set by choose_layouts: PreparedKernel::overwrites
  Pass pass = Pass::forward;

  [[nodiscard]] bool is_alias() const { return is_view || (op && op->is_alias()); }
};

/// Whether the ranks of a training sum what the node makes: then all of them run it, and each once.
[[nodiscard]] bool is_all_reduce(const LoweredNode& node);

/// Gives `variable`, or what with_copies makes persistent as one, the numbers of `value` at the end of a run.
struct LoweredAssignment {
  ValueId variable, value;
};

struct Lowered {
  std::vector<LoweredValue> values;
  std::vector<LoweredNode> nodes;  // in execution order
  std::vector<LoweredAssignment> assignments;

  [[nodiscard]] LoweredValue& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const LoweredValue& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::vector<TensorSpec> specs(const std::vector<ValueId>& ids) const;
  /// The value whose storage `id` uses: itself, or what it is an alias of.
  [[nodiscard]] ValueId root(ValueId id) const;
  /// The value that an operator made, or an input or variable, whose numbers `id` is under another shape or layout.
  [[nodiscard]] ValueId source(ValueId id) const;
  [[nodiscard]] std::size_t bytes(ValueId id) const;
  /// Whether element j of output k may be written once element j of input i was read, if both have the same order.
  [[nodiscard]] static bool in_place(const LoweredNode& node, std::size_t i, std::size_t k);
  /// Whether no output of the node has an element, so that it needs no kernel.
  [[nodiscard]] bool is_empty(const LoweredNode& node) const;
};

/// A part of a graph that a program runs: what it makes, and what it is given.
struct Section {
  std::vector<Value> outputs;
  std::vector<Assignment> assignments;
  std::vector<Value> given = {};  // values that are not computed: inputs, which the caller writes
  /// The program pauses when it has made these, and the caller may write inputs that what comes before does not read.
  /// Empty: it does not pause.
  std::vector<Value> before_pause = {};
};

/// The nodes that the section needs; as below.
[[nodiscard]] Lowered lower_section(const Graph& graph, const Section& section, bool retains_all);
/// Those of the graph's assignments that this part of a run makes.
[[nodiscard]] std::vector<Assignment> assignments_of(const Graph& graph, RunPart part);

/// The nodes that `outputs` and the assignments need. Where one sums over nothing, as a matrix multiplication over an
/// inner size of 0, it becomes a constant. An assigned value that is itself an input or a variable becomes
/// a copy first, so that assignments cannot disturb each other. With `retains_all` every computed value is kept.
[[nodiscard]] Lowered lower(const Graph& graph, std::span<const Value> outputs, bool retains_all,
                            RunPart part = RunPart::whole);

/// Moves each node of the update pass to the place where the last of its inputs is made. In a step of several ranks,
/// what weighs a gradient is such a node: the gradient then goes to the other ranks beside the rest of the backward
/// pass. After lower.
void hurry_updates(Lowered& program);

/// Variables that are written in the midst of a run (CompileOptions::late).
using LateVariables = std::vector<std::vector<std::string>>;
/// How many sets of late variables must be there before this value: 0 for what is no late variable.
[[nodiscard]] std::size_t late_place(const LoweredValue& value, const LateVariables& late);

/// Moves the nodes that need late variables behind all others, in the order of these. Returns for each node how many of
/// the sets must be there before it; 0 for those that need none. After lower.
std::vector<std::size_t> put_late_last(Lowered& program, const LateVariables& late);

/// Makes one node of each cross-entropy and the formula of its logits' gradient (ops::CrossEntropyWithGradient), where
/// nothing that the formula reads waits for the loss and `device` has a kernel for it. A part of fuse.
void join_loss_gradients(Lowered& program, const Device& device);

/// Makes one node of the check whether gradients are finite and the formulas of single numbers that wait for it
/// (ops::AllFiniteWithNumbers), where `device` has a kernel for it. A part of fuse.
void join_finite_numbers(Lowered& program, const Device& device);

/// Lets the sum of rows by index add to a tensor to which its result was to be added, where `device` has a kernel for
/// it: the gradient of a table that is also read by a product, of which few rows have indices. A part of fuse.
void join_scatters(Lowered& program, const Device& device);

/// Puts factors by channel behind a convolution into its weights, where the weights and factors are variables that the
/// program does not assign, or are computed from such: what stays behind the convolution is one addition by channel. A
/// part of fuse.
void fold_factors(Lowered& program);

/// Makes matrix multiplications of patches of convolutions whose patches do not overlap, and of the gradients of their
/// weights, where `device` is faster with these. A formula of the result and of numbers by channel, such as a bias,
/// that alone reads the result is computed before the result gets its shape. A part of fuse.
void multiply_patches(Lowered& program, const Device& device, Precision precision);

/// What fuse is told besides the device.
struct FuseOptions {
  Precision precision = Precision::fp32;
  bool pauses = false;  // the program pauses
  bool folds = false;   // fold_factors, if the device wants it
};

/// Merges chains of pointwise operators of one shape, makes products of patches (multiply_patches), merges what
/// join_loss_gradients and join_finite_numbers join, then pointwise operators into the epilogue of the operator before
/// them, then into the prologue of the operator behind them, where `device` supports it. A value that is kept, assigned
/// or read twice stays. In a program that pauses, losses stay apart from gradients, whose operands may be written
/// during the pause.
void fuse(Lowered& program, const Device& device, const FuseOptions& options = {});

/// Makes one operator of equal pointwise operators that do nothing but give variables new values: the updates of many
/// parameters. A group runs where its last member stood. An update that something reads joins no later ones, and the
/// bytes that wait for a group to be complete while others work are few. Between the first and the last member of a
/// group variables of at most `most_apart` bytes are assigned. The members of a group wait for the same late variables:
/// nodes are moved for that (put_late_last). After fuse.
void group_updates(Lowered& program, std::size_t most_apart = SIZE_MAX, const LateVariables& late = {});

/// Prepares every kernel, carrying each producer's layout to its consumers and inserting a reorder where a kernel
/// wants another one. Variables, inputs and assigned values are row-major. A transposition that layouts make a matter
/// of names becomes a view, unless `retains_all`. Throws OutOfMemory before any is prepared where a value is larger
/// than the device allocates at once.
void choose_layouts(Lowered& program, Device& device, Precision precision = Precision::fp32, bool retains_all = false);

/// The updates of a group as groups of which some also write copies of weights: those that earlier reorders of the
/// program make of a variable, where the copy is row-major in another type. Such a copy becomes the variable of an
/// assignment. Any other node is returned as it is. A part of choose_layouts.
[[nodiscard]] std::vector<LoweredNode> with_copies(Lowered& program, LoweredNode node);

/// Throws OutOfMemory that names the value where `bytes` of it are more than the device allocates at once.
void require_allocatable(const LoweredValue& value, std::size_t bytes, const DeviceInfo& device);

/// Marks the nodes that read nothing but variables the program does not assign, and what such nodes make: they run
/// before the others and only when those variables have changed. Their results stay in memory, so only small ones are
/// marked, and reorders of variables. A copy that an update writes needs its reorder only when its variable was changed
/// by others. What is computed from late variables is none. After choose_layouts, which adds nodes.
void find_invariants(Lowered& program, const LateVariables& late = {});

/// Makes one node of the reorders of variables into layouts that are made in groups (LayoutDescription), where the
/// device has a kernel for that, and another one of those that are invariant. It runs where the first of them stood, so
/// that all of the results are in memory from there on. After find_invariants.
void group_reorders(Lowered& program, Device& device, const LateVariables& late = {});

/// In the forward pass, of which all parts of a run have the same nodes, makes one node of an operator and a formula of
/// its result, which others read too, such as an activation whose gradient needs what it was computed of, where the
/// device has a kernel for it (ops::Appended). After find_invariants.
void append_formulas(Lowered& program, Device& device, Precision precision);

/// Makes one node of products of the gradient pass that sum over the rows of both factors, share one of them and have
/// the same sizes, such as the gradients of the weights of queries, keys and values, and one of operators of a kind that
/// the device groups (Device::gradient_kind), such as the gradients of the weights of convolutions, where `device` wants
/// that. It runs where the last of them stood. After lower and before hurry_updates, so that it is the same in all parts
/// of a run.
void group_products(Lowered& program, const Device& device, Precision precision);

/// Makes one node of operators of one kind whose results nothing reads for a while, such as the gradients of biases, or
/// the products of queries, keys and values, where the device groups them (GroupKind). It runs where the last of them
/// stood, at most `most_apart` nodes behind the first. What the others read waits for it in memory. After
/// find_invariants.
void group_operators(Lowered& program, Device& device, Precision precision, std::size_t most_apart = SIZE_MAX);

}  // namespace concord
