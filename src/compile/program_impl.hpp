// What a Program holds; shared by program.cpp (building, running) and trace.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "concord/compile/lowered.hpp"
#include "concord/compile/plain_copies.hpp"
#include "concord/compile/plan.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// The first passes, as the options want them.
[[nodiscard]] Lowered lower_and_fuse(const Graph& graph, std::span<const Value> outputs, const Device& device,
                                     const CompileOptions& options);
/// The arena of a plan. Throws OutOfMemory naming the value that is larger than one allocation may be.
[[nodiscard]] Arena place(const Lowered& lowered, const MemoryPlan& plan, const DeviceInfo& device);
/// Bytes of the program's variables that the device does not hold yet.
[[nodiscard]] std::size_t missing_bytes(const Lowered& lowered, const Variables& variables);

struct ProgramImpl {
  VariablesPtr variables;
  Lowered lowered;
  std::vector<BufferPtr> slabs;
  std::vector<BufferPtr> variable_buffers;  // kept alive
  std::vector<Operand> operands;            // by value; empty buffer when the value has no storage of its own
  std::vector<std::unique_ptr<Launch>> launches;
  std::vector<std::size_t> launch_nodes;  // the node of each launch
  std::vector<timeline::Label> labels;    // of each launch; empty until they are recorded
  std::vector<std::unique_ptr<Launch>>
      invariant;  // of invariant nodes: run when a source is not of the revision they saw
  struct Source {
    const Buffer* buffer;
    std::uint64_t seen;
  };
  std::vector<Source> sources;  // variables that invariant nodes read
  bool invariants_computed = false;
  std::vector<Buffer*> assigned;  // buffers of the variables that a run changes
  struct Copy {
    Operand from, to;
    std::size_t bytes;
  };
  std::vector<Copy> commits;             // assignments done after the last launch
  std::map<std::string, ValueId> names;  // readable values
  PlainCopies plain_copies;
  std::size_t memory = 0;
  bool retains_all = false;

  [[nodiscard]] Device& device() const { return variables->device(); }
  /// Brings the results of invariant nodes up to date.
  void settle();
  void commit();
  void run(std::span<const std::size_t> marks, const std::function<void(std::size_t)>& reached);
  /// Enqueues one, onto the timeline where there is one.
  void enqueue(std::size_t place);
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

/// Allocates the program's memory and binds its kernels (bind.cpp). Throws OutOfMemory.
void allocate(ProgramImpl& program, const MemoryPlan& plan);

}  // namespace concord
