// Program: a graph compiled for one device, as a flat list of prepared launches over a planned arena.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/variables.hpp"
#include "concord/core/error.hpp"
#include "concord/core/export.hpp"
#include "concord/core/held.hpp"
#include "concord/graph/graph.hpp"
#include "concord/graph/operator.hpp"

namespace concord {
struct ProgramImpl;
struct Section;
}  // namespace concord

namespace CONCORD_PUBLIC concord {

/// The values that can be read after a run.
enum class Retain {
  outputs,  ///< The outputs, inputs and variables.
  fused,    ///< Also every value that remains after fusion: checks the kernels of a normal run. Memory is not reused.
  all       ///< Every value of the graph. Nothing is fused, and memory is not reused.
};

/// The part of a step that a program runs. Graph::exchange cuts a step in two, between which the host sums variables
/// over the ranks of a training. A step without an exchange has one part, `whole`.
enum class RunPart : std::uint8_t {
  whole,            ///< Both parts at once, with the sums of the last exchange. Makes each variable's last assignment.
  before_exchange,  ///< What the early assignments need (Graph::assign_early), and the outputs.
  after_exchange    ///< What the other assignments need, and the outputs.
};

struct CompileOptions {
  bool fuse = true;
  Retain retain = Retain::outputs;
  Precision precision = Precision::fp32;
  /// If the device has several kernels for a matrix multiplication and no tuning table names the fastest, compile()
  /// measures them for at most this many seconds and stores the result. Below 0: $CONCORD_TUNE_SECONDS, else 0.
  double tune_seconds = -1;
  /// Above 0: the upper limit of Program::memory() in bytes. The program then computes some results of the forward pass
  /// again for the backward pass instead of keeping them; results keep their bits. compile() throws MemoryBudgetError
  /// if the limit is too low, and ArgumentError together with Retain::all or Retain::fused.
  std::size_t memory_budget = 0;
  RunPart part = RunPart::whole;
  /// Variables by name that the host writes in the midst of a run (Program::launches_until_read), in the order in which
  /// it does: sets of them. What needs them runs behind all else, in this order.
  std::vector<std::vector<std::string>> late = {};
};

/// CompileOptions::memory_budget is too small for the program.
class MemoryBudgetError : public OutOfMemory {
 public:
  MemoryBudgetError(const std::string& message, std::size_t least) : OutOfMemory(message), least_(least) {}
  /// The smallest budget found possible, in bytes.
  [[nodiscard]] std::size_t least() const { return least_; }

 private:
  std::size_t least_;
};

/// The work that a run does twice to stay within a memory budget.
struct Recomputed {
  std::size_t launches = 0;
  Cost cost;
};

/// One launch of a traced run.
struct TraceEntry {
  std::string node;    // "conv1/conv2d"
  std::string op;      // "conv2d"
  std::string kernel;  // the chosen implementation
  std::string shapes;  // "f32 [64, 1, 28, 28], f32 [20, 1, 5, 5] -> f32 [64, 20, 24, 24]"; of the first if fused
  double seconds = 0;
  Cost cost;
  Pass pass = Pass::forward;
};

/// The range of the numbers in a value.
struct ValueRange {
  std::string name;
  std::int64_t elements = 0, not_finite = 0;
  float least = 0, greatest = 0;  // of the finite elements; 0 if there are none
};

/// An index outside its table, or a label that is not a class. The result for such an index is NaN.
struct WrongIndex {
  std::string indices;        // name of the value that contains the index
  Shape shape;                // of that value
  std::int64_t position = 0;  // position in that value, row-major
  std::int64_t index = 0, limit = 0;
  /// The sample of the batch that the index belongs to. Empty if the value cannot be divided evenly into `batch`
  /// samples.
  [[nodiscard]] std::optional<std::int64_t> sample(std::int64_t batch) const;
  /// "index 99 of sample 3 (element [3, 0] of ids) is outside [0, 5)". If `sample` is empty, the text does not name it.
  [[nodiscard]] std::string str(std::optional<std::int64_t> sample) const;
};

/// The first value of a checked run that has a NaN or infinite element.
struct NonFiniteReport {
  bool found = false;
  std::string node, op, shapes;
  ValueRange value;
  std::vector<ValueRange> inputs;                        // of the inputs of type f32
  std::optional<WrongIndex> wrong_index = std::nullopt;  // set if it is the cause
  /// "'head/log' (pointwise, f32 [2] -> f32 [2]; 1 of 2 elements), computed from x in [0, 4], …"
  [[nodiscard]] std::string str() const;
};

/// One operator and its results on given inputs.
struct ReplayedNode {
  TraceEntry entry;  // seconds is 0
  const Operator* op;
  /// Names of values and variables. Aliases and reorders are resolved to the value that they show.
  std::vector<std::string> input_names;
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;  // value names
  std::vector<Tensor> results;       // computed by this device
};

/// A compiled program. `run` only enqueues work: it allocates nothing, builds no string and does not wait. A program
/// keeps its device and variables alive. Using a program that was moved from, or whose device another thread is using,
/// throws ArgumentError.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Enqueues one run. Values that depend only on unassigned variables (invariants) are computed again only after those
  /// variables have changed.
  void run();
  /// As `run`, and calls reached(i) as soon as the first marks[i] launches are enqueued, for each i in order. The marks
  /// ascend, up to launches().
  void run(std::span<const std::size_t> marks, const std::function<void(std::size_t)>& reached);
  /// How values are summed over the ranks in the midst of a run (all_reduce). `run` calls `sum` after each such launch,
  /// in the order of the graph. `sum` replaces `count` floats by their sum over the ranks, for what is enqueued later;
  /// it may wait, and its exception ends the run. Without it, running a program with an all_reduce throws
  /// ArgumentError.
  void all_reduce_by(std::function<void(const Operand& values, std::size_t count)> sum);
  /// The all_reduces of a run, in order: after which launch, and how many floats.
  struct AllReduced {
    std::size_t launch = 0, count = 0;
  };
  [[nodiscard]] std::vector<AllReduced> all_reduces() const;
  /// Of a program that pauses (compile_section): enqueue what comes before the pause, and what comes behind it.
  void run_before_pause();
  void run_after_pause();
  [[nodiscard]] bool pauses() const;
  /// The same program again, whose run may be under way at the same time: it has inputs, outputs and what lies between
  /// the parts of a run in memory of its own, and shares kernels, variables and all other memory. Throws OutOfMemory.
  [[nodiscard]] Program twin() const;
  /// The number of launches after which these variables, which the program assigns, have their new values.
  [[nodiscard]] std::size_t launches_until_assigned(std::span<const std::string> variables) const;
  /// The number of launches before the first that reads one of these variables; if none does, all but those that assign
  /// variables at the end. Variables that the program does not have are not read.
  [[nodiscard]] std::size_t launches_until_read(std::span<const std::string> variables) const;
  /// Runs one launch after another and measures the time of each.
  [[nodiscard]] std::vector<TraceEntry> run_traced();
  /// Runs one launch after another and stops at the first value with a NaN or infinite element. Stops before the first
  /// assignment, so variables do not change. Needs Retain::all or Retain::fused.
  [[nodiscard]] NonFiniteReport find_non_finite();

  /// Runs one operator after another on given inputs and passes each result to `seen`. So a difference between devices
  /// shows at the operator that causes it and does not spread.
  /// - `values` returns the tensor for the name of an input. If it returns null, the operator reads what this device
  ///   computed, or what the variable holds. The tensors must not change until replay returns.
  /// - `wanted`, if given, selects the operators to run. `values` must return the results of the others.
  /// - Reorders of layouts are not operators. Variables do not change. Needs Retain::all or Retain::fused.
  void replay(const std::function<const Tensor*(const std::string& value)>& values,
              const std::function<void(const ReplayedNode&)>& seen,
              const std::function<bool(const TraceEntry& entry, const Operator* op)>& wanted = {});

  /// Assigns the results of the last replay to the variables, as the end of a run does. If `values` gave only results
  /// of this device, replay and commit are equal to one run, bit for bit. Needs Retain::all or Retain::fused.
  void commit();

  /// Copies a tensor to an input of the graph. The caller may change the tensor when the call returns. Throws
  /// ArgumentError for an unknown name, ShapeError for another spec.
  void write(const std::string& input, const Tensor& value);
  /// Whether the program reads an input of this name. It reads those that an output or an assignment needs.
  [[nodiscard]] bool has_input(const std::string& name) const;
  /// The storage of an input, for the caller's own transfers.
  [[nodiscard]] Operand input(const std::string& name) const;
  /// The storage of a value that `read` can read, for the caller's own transfers; none if it is not in row-major order.
  [[nodiscard]] std::optional<Operand> output(const std::string& value) const;
  /// Waits for the last run and reads a value by name: an output, an input, a variable, or with Retain::all or
  /// Retain::fused any value that remains.
  /// An assigned variable has its value after the run, and so has a view of it unless the view is an output.
  [[nodiscard]] Tensor read(const std::string& value) const;
  [[nodiscard]] Tensor read(Value value) const { return read(value.name()); }

  /// The names of all readable values, in execution order.
  [[nodiscard]] std::vector<std::string> values() const;
  /// The bytes of the arena, the inputs, the outputs and the workspaces together. Variables are not included.
  [[nodiscard]] std::size_t memory() const;
  /// The number of launches of one run, without launches for invariants.
  [[nodiscard]] std::size_t launches() const;
  /// The work of one run, summed over the operators.
  [[nodiscard]] Cost cost() const;
  /// The part of launches() and cost() that CompileOptions::memory_budget added.
  [[nodiscard]] Recomputed recomputed() const;
  [[nodiscard]] Device& device() const;
  [[nodiscard]] Variables& variables() const;

 private:
  friend Program compile(const Graph&, std::span<const Value>, const VariablesPtr&, const CompileOptions&);
  friend Program compile_section(const Graph&, const Section&, const VariablesPtr&, const CompileOptions&);
  explicit Program(std::unique_ptr<ProgramImpl> impl);
  Held<ProgramImpl> impl_;
};

/// Compiles the part of the graph that `outputs` and the assignments need, for the device of `variables`. Throws
/// OutOfMemory with the needed and the available memory, MemoryBudgetError with the smallest possible budget,
/// NotSupported with the node that has no kernel, and ArgumentError for an output that is empty or belongs to another
/// graph.
[[nodiscard]] Program compile(const Graph& graph, std::span<const Value> outputs, const VariablesPtr& variables,
                              const CompileOptions& options = {});
/// Overloads for a list of outputs, compile(graph, {y, loss}, variables), and for one output.
[[nodiscard]] Program compile(const Graph& graph, std::initializer_list<Value> outputs, const VariablesPtr& variables,
                              const CompileOptions& options = {});
[[nodiscard]] Program compile(const Graph& graph, const Value& output, const VariablesPtr& variables,
                              const CompileOptions& options = {});

}  // namespace concord
