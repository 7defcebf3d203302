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

/// Of a step that trains, on one of its stages. All stages call the same operations together.
class SharedParameters {
 public:
  SharedParameters(collective::Group& group, const Traced& traced, const Stages& stages, const VariablesPtr& variables,
                   const CompileOptions& options);

  /// Brings the parts of each gradient together at the home of the parameter, in the order of the stages.
  void add_gradients();
  /// Sends the new values, and averages, from their homes to the other stages that read them.
  void send_values();

 private:
  [[nodiscard]] bool is_here(int stage) const { return stage == group_.rank(); }

  /// A gradient. What is not of this stage is empty.
  struct Gradient {
    int home = 0;
    std::size_t bytes = 0;
    std::vector<int> others;    // the stages that have the other parts
    Storage own = BufferPtr();  // the part of this stage, or where it takes the others'
    std::optional<Program> add;
  };
  /// A variable that other stages read.
  struct Guest {
    int home = 0;
    std::size_t bytes = 0;
    std::set<int> readers;
    Storage value = BufferPtr();
  };
  void add_guest(const Value& variable, int home, const std::set<int>& readers, Variables& variables);

  collective::Group& group_;
  VariableTransfer transfer_;
  std::vector<Gradient> gradients_;
  std::vector<Guest> guests_;
};

}  // namespace concord::train
