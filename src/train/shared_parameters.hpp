// Parameters that several stages of a network read: what the stages send each other of them at the end of an update.
// Internal to the room.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/compile/program.hpp"
#include "concord/graph/stages.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

/// Variables on their way between the devices of stages, in pieces: while one goes through the group, the next is
/// copied between device and host.
class VariableTransfer {
 public:
  VariableTransfer(Device& device, collective::Group& group) : device_(device), group_(group) {}

  /// Of so many bytes, as they are after what is enqueued now.
  void send(const Storage& from, std::size_t bytes, const std::set<int>& to);
  /// What is enqueued later reads the new bytes.
  void receive(const Storage& to, std::size_t bytes, int from);

 private:
  static constexpr std::size_t kPiece = std::size_t{4} << 20;
  struct Piece {
    StagingPtr staging;
    EventPtr moved;
  };
  /// The memory for the piece that begins at this byte.
  [[nodiscard]] Piece& piece_at(std::size_t begin);

  Device& device_;
  collective::Group& group_;
  std::array<Piece, 2> pieces_;
};

/// The values of variables that other stages read. All stages call the same operations together.
class SharedValues {
 public:
  /// Those that this step assigns: the parameters, or their averages.
  SharedValues(collective::Group& group, const Graph& graph, const Stages& stages, Variables& variables,
               VariableRole role);
  /// From their homes to the other stages that read them.
  void send();

 private:
  struct Guest {
    int home = 0;
    std::size_t bytes = 0;
    std::set<int> readers;
    Storage value = BufferPtr();  // empty on all other stages
  };
  collective::Group& group_;
  VariableTransfer transfer_;
  std::vector<Guest> guests_;
};

/// The gradients of parameters that several stages read. All stages call the same operations together.
class SharedGradients {
 public:
  SharedGradients(collective::Group& group, const Traced& traced, const VariablesPtr& variables,
                  const CompileOptions& options);
  /// Brings the parts of each gradient together at the home of the parameter, in the order of the stages.
  void add();

 private:
  struct Gradient {
    int home = 0;
    std::size_t bytes = 0;
    std::vector<int> others;    // the stages that have the other parts
    Storage own = BufferPtr();  // the part of this stage, or on the home where it takes those of the others
    std::optional<Program> add;
  };
  [[nodiscard]] bool is_here(int stage) const { return stage == group_.rank(); }

  collective::Group& group_;
  VariableTransfer transfer_;
  std::vector<Gradient> gradients_;
};

}  // namespace concord::train
