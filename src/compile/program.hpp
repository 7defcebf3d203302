// Program: a graph compiled for one device — a flat list of prepared launches over a planned arena.
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
}

namespace CONCORD_PUBLIC concord {

struct CompileOptions {
  bool fuse = true;
  /// Every value of the graph stays readable after a run: no fusion, no reuse of memory.
  bool keep_all = false;
  /// Every value that fusion leaves stays readable, and no memory is reused: to look at the kernels that really run.
  bool keep_fused = false;
  Precision precision = Precision::fp32;
  /// Where the device has several kernels for a product and no table says which is fastest, so many seconds are spent
  /// on measuring them, once: what is found is stored. Below 0: $CONCORD_TUNE_SECONDS, else none.
  double tune_seconds = -1;
  /// Above 0: Program::memory() is at most so many bytes. Results that a training step's backward pass reads are then
  /// computed again, as far as it takes, instead of kept since the forward pass; all numbers keep their bits. compile()
  /// throws MemoryBudgetError where that is not enough, ArgumentError together with keep_all or keep_fused.
  std::size_t memory_budget = 0;
};

/// CompileOptions::memory_budget is less than the program can do with.
class MemoryBudgetError : public OutOfMemory {
 public:
  MemoryBudgetError(const std::string& message, std::size_t least) : OutOfMemory(message), least_(least) {}
  /// The smallest budget found possible, in bytes.
  [[nodiscard]] std::size_t least() const { return least_; }

 private:
  std::size_t least_;
};

/// What a run computes a second time to keep to a memory budget.
struct Recomputed {
  std::size_t launches = 0;
  Cost cost;
};

/// One launch of a traced run.
struct TraceEntry {
  std::string node;    // "conv1/conv2d"
  std::string op;      // "conv2d"
  std::string kernel;  // the implementation chosen
  std::string shapes;  // "f32 [64, 1, 28, 28], f32 [20, 1, 5, 5] -> f32 [64, 20, 24, 24]"; of a group the first
  double seconds = 0;
  Cost cost;
  Pass pass = Pass::forward;
};

/// What a value holds.
struct ValueRange {
  std::string name;
  std::int64_t elements = 0, not_finite = 0;
  float least = 0, greatest = 0;  // of the finite ones; 0 when there is none
};

/// An index that names no row of its table, or no class: what is gathered by it is NaN.
struct WrongIndex {
  std::string indices;          // name of the value that holds it
  Shape shape;                  // of that value
  std::int64_t position = 0;    // in it, row-major
  std::int64_t index = 0, limit = 0;
  /// Which of `batch` samples it belongs to; empty where the samples do not share the value evenly.
  [[nodiscard]] std::optional<std::int64_t> sample(std::int64_t batch) const;
  /// "index 99 of sample 3 (element [3, 0] of ids) is outside [0, 5)"; without the sample where that is empty.
  [[nodiscard]] std::string str(std::optional<std::int64_t> sample) const;
};

/// The first value of a checked run that is not finite.
struct NonFiniteReport {
  bool found = false;
  std::string node, op, shapes;
  ValueRange value;
  std::vector<ValueRange> inputs;  // of f32
  std::optional<WrongIndex> wrong_index = std::nullopt;  // where it is the cause
  /// "'head/log' (pointwise, f32 [2] -> f32 [2]; 1 of 2 elements), computed from x in [0, 4], …"
  [[nodiscard]] std::string str() const;
};

/// One operator run on given inputs.
struct ReplayedNode {
  TraceEntry entry;  // seconds is 0
  const Operator* op;
  std::vector<std::string> input_names;  // of values and variables; of what an alias stands for, before any reorder
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;  // value names
  std::vector<Tensor> results;       // what this device made of the inputs
};

/// `run` only enqueues: no allocation, no string, no host wait. A program keeps its device and variables alive. One that
/// was moved from, or whose device another thread is using, throws ArgumentError.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Enqueues one run. What depends on unassigned variables alone is computed again only when these have changed.
  void run();
  /// Runs launch by launch, timing each.
  [[nodiscard]] std::vector<TraceEntry> run_traced();
  /// Runs launch by launch and stops before the first assignment if a value is not finite. Variables are untouched.
  /// Needs keep_all.
  [[nodiscard]] NonFiniteReport find_non_finite();

  /// Runs operator by operator, each on the inputs that `values` gives for their names (a null pointer: on what this
  /// device computed; of a variable: what it holds) and hands every result to `seen`. Given tensors stay as they are
  /// until it returns. So a difference between devices shows where it arises and is not carried on. An operator that
  /// `wanted` (where given) declines is left out: `values` has to know its results. Reorders of layout are no
  /// operators. Variables are untouched. Needs keep_all or keep_fused.
  void replay(const std::function<const Tensor*(const std::string& value)>& values,
              const std::function<void(const ReplayedNode&)>& seen,
              const std::function<bool(const TraceEntry& entry, const Operator* op)>& wanted = {});

  /// Gives the variables what the last replay made for them, as the end of a run does. After a replay whose `values`
  /// gave no other numbers than this device's own, a run has been done, to the bit. Needs keep_all or keep_fused.
  void commit();

  /// Sets an input of the graph; the tensor may be reused at once. Throws ArgumentError for an unknown name,
  /// ShapeError for another spec.
  void write(const std::string& input, const Tensor& value);
  /// The storage of an input, for transfers of one's own.
  [[nodiscard]] Operand input(const std::string& name) const;
  /// Reads a value by name after a run (waits for it): an output, an input, a variable, or with keep_all any value. A
  /// variable that is assigned is then as the run leaves it, and so is a view of it that is no output.
  [[nodiscard]] Tensor read(const std::string& value) const;
  [[nodiscard]] Tensor read(Value value) const { return read(value.name()); }

  /// Names of all readable values in execution order.
  [[nodiscard]] std::vector<std::string> values() const;
  /// Bytes of the arena, of inputs and outputs, and of workspaces together (without variables).
  [[nodiscard]] std::size_t memory() const;
  /// Number of launches of one run, without those that a change of variables makes necessary.
  [[nodiscard]] std::size_t launches() const;
  /// Work of one run, summed over the operators.
  [[nodiscard]] Cost cost() const;
  /// The part of launches() and cost() that CompileOptions::memory_budget added.
  [[nodiscard]] Recomputed recomputed() const;
  [[nodiscard]] Device& device() const;
  [[nodiscard]] Variables& variables() const;

 private:
  friend Program compile(const Graph&, std::span<const Value>, const VariablesPtr&, const CompileOptions&);
  explicit Program(std::unique_ptr<ProgramImpl> impl);
  Held<ProgramImpl> impl_;
};

/// Compiles what `outputs` and the graph's assignments need for the device of `variables`. Throws OutOfMemory with
/// what the program needs and what there is, MemoryBudgetError with the least possible budget; NotSupported with the
/// node no kernel exists for; ArgumentError for an output that is empty or of another graph.
[[nodiscard]] Program compile(const Graph& graph, std::span<const Value> outputs, const VariablesPtr& variables,
                              const CompileOptions& options = {});
/// Of outputs that are listed, compile(graph, {y, loss}, variables), and of one.
[[nodiscard]] Program compile(const Graph& graph, std::initializer_list<Value> outputs, const VariablesPtr& variables,
                              const CompileOptions& options = {});
[[nodiscard]] Program compile(const Graph& graph, const Value& output, const VariablesPtr& variables,
                              const CompileOptions& options = {});

}  // namespace concord
