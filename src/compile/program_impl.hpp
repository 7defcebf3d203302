// What a Program holds; shared by program.cpp (building, running) and trace.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/compile/lowered.hpp"
#include "concord/compile/plain_copies.hpp"
#include "concord/compile/plan.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// The first passes, as the options want them.
[[nodiscard]] Lowered lower_and_fuse(const Graph& graph, const Section& section, const Device& device,
                                     const CompileOptions& options);
/// The passes that make few launches of many, after choose_layouts: find_invariants, group_reorders, append_formulas
/// and group_operators.
void group_launches(Lowered& program, Device& device, const Section& section, const CompileOptions& options);
/// What these options want of a graph.
[[nodiscard]] inline Section section_of(const Graph& graph, std::span<const Value> outputs,
                                        const CompileOptions& options) {
  return {{outputs.begin(), outputs.end()}, assignments_of(graph, options.part)};
}
/// The arena of a plan. Throws OutOfMemory naming the value that is larger than one allocation may be.
[[nodiscard]] Arena place(const Lowered& lowered, const MemoryPlan& plan, const DeviceInfo& device);
/// Bytes of the program's variables that the device does not hold yet.
[[nodiscard]] std::size_t missing_bytes(const Lowered& lowered, const Variables& variables);

struct ProgramImpl {
  VariablesPtr variables;
  Lowered lowered;
  std::vector<BufferPtr> slabs;             // of this program
  std::vector<BufferPtr> scratch;           // of this program and its twins: what nothing reads across the pause
  std::vector<BufferPtr> variable_buffers;  // kept alive
  std::vector<Operand> operands;            // by value; empty buffer when the value has no storage of its own
  std::vector<std::unique_ptr<Launch>> launches;
  std::vector<std::size_t> launch_nodes;  // the node of each launch
  std::vector<timeline::Label> labels;    // of each launch; empty until they are recorded
  /// Of the invariant nodes, which twins share.
  struct Invariants {
    struct Source {
      const Buffer* buffer;
      /// Whether all that is computed from it are copies that the program's updates write.
      bool is_followed = true;
      std::uint64_t seen = 0;           // the revision of what is computed
      std::uint64_t before_commit = 0;  // the revision then, in each run
      bool has_changed = false;         // whether it is of another revision than `seen` when a run begins
    };
    struct Part {
      std::unique_ptr<Launch> launch;
      std::vector<std::size_t> sources;  // it runs when one of them has changed
    };
    std::vector<Part> parts;
    std::vector<Source> sources;  // variables that they read
    bool are_computed = false;
  };
  std::shared_ptr<Invariants> invariants = std::make_shared<Invariants>();
  std::vector<Buffer*> assigned;  // buffers of the variables that a run changes
  struct Copy {
    Operand from, to;
    std::size_t bytes;
  };
  std::vector<Copy> commits;  // assignments done after the last launch, or at the pause
  /// Of a program that pauses: the launches, and the commits, that come before the pause.
  struct Pause {
    std::int32_t node = 0;  // the first behind it
    std::size_t launches = 0, commits = 0;
  };
  std::optional<Pause> pause;
  std::vector<std::size_t> all_reduces;  // launches whose result is summed over the ranks
  std::function<void(const Operand& values, std::size_t count)> all_reduce;
  std::map<std::string, ValueId> names;  // readable values
  PlainCopies plain_copies;
  std::size_t memory = 0;
  bool retains_all = false;

  [[nodiscard]] Device& device() const { return variables->device(); }
  /// Brings the results of invariant nodes up to date.
  void settle();
  void commit();
  void run(std::span<const std::size_t> marks, const std::function<void(std::size_t)>& reached);
  void run_before_pause();
  void run_after_pause();
  /// Makes the copies [begin, end) of `commits`.
  void commit(std::size_t begin, std::size_t end);
  /// work(), which enqueues launches. They write directly into variables, so after a failure these count as changed,
  /// and what other programs have computed from them is computed again.
  template <class Work>
  void enqueue_all(const Work& work) {
    try {
      work();
    } catch (...) {
      for (Buffer* buffer : assigned) buffer->touch();
      throw;
    }
  }
  /// Enqueues one, onto the timeline where there is one.
  void enqueue(std::size_t place);
  /// Sums the result of a launch over the ranks, if it is to be.
  void sum_over_ranks(std::size_t place);
  /// Throws ArgumentError if nobody sums over the ranks, but the program needs it.
  void require_all_reduce() const;
  /// For the timeline, of each launch.
  [[nodiscard]] const std::vector<timeline::Label>& timeline_labels();
  [[nodiscard]] Tensor read(ValueId id);
  /// A value on its way to the host: it is there when `event` has happened, or is null.
  struct Arriving {
    Tensor value;
    EventPtr event;
  };
  [[nodiscard]] Arriving read_async(ValueId id);
  /// Overwrites a value that has its own storage (retains_all), in the layout it is kept in. The tensor stays as it is
  /// until what is enqueued by now is done.
  void overwrite(ValueId id, const Tensor& tensor);
  /// What is known of launch `i` without running it.
  [[nodiscard]] TraceEntry describe(std::size_t i) const;
  /// "f32 [2, 3], f32 [3] -> f32 [2, 3]"
  [[nodiscard]] std::string shapes(const LoweredNode& node) const;
};

/// Allocates the program's memory and binds its kernels (bind.cpp). A twin shares the memory of `original` but for what
/// it needs across its pause. Throws OutOfMemory.
void allocate(ProgramImpl& program, const MemoryPlan& plan, const ProgramImpl* original = nullptr);

}  // namespace concord
