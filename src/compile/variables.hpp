// Variables: tensors that persist on one device between runs: weights, optimizer state, running statistics, counters.
// Programs compiled with the same Variables share them, such as a training and an evaluation program of one network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/held.hpp"
#include "concord/device/device.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// The initial value of a variable: its `value`, else drawn by its initializer from Philox(seed, hash of name, index).
/// It has the same bits on every machine.
[[nodiscard]] Tensor initial_value(const Variable& variable, std::uint64_t seed);

/// Which networks share weights of equal names. by_module: only a module and its copies share weights; two separate
/// networks with equal names in one Variables are an error. by_name: separate networks share them too.
enum class Sharing : std::uint8_t { by_module, by_name };

/// Where a variable lies: in `buffer`, from byte `offset` on. Several variables may share a buffer.
struct Storage {
  BufferPtr buffer;
  std::size_t offset = 0;
  Storage(BufferPtr whole, std::size_t from = 0) : buffer(std::move(whole)), offset(from) {}  // NOLINT: a whole buffer
};

/// Named, row-major tensors in the memory of one device.
class Variables {
 public:
  /// Throws ArgumentError if `device` is null.
  Variables(DevicePtr device, std::uint64_t seed, Sharing sharing = Sharing::by_module);

  /// Returns the storage of `variable`. The first call allocates it and writes the initial value. Throws ShapeError if
  /// a variable of another spec has the name, ArgumentError if a variable of another role has it.
  Storage require(const Variable& variable) { return require(variable, nullptr); }
  /// Returns the storage of `variable`, which the graph calls `name` ("0.weight"). A parameter may have had another
  /// name in an earlier program, as part of another network; it keeps its storage. Throws as above, and ArgumentError
  /// if the parameter of another existing network has the name (see Sharing).
  Storage require(const VariablePtr& variable, const std::string& name);
  /// Adds storage that the caller owns, such as that of a data set, under a name, and replaces storage that was bound
  /// under it; `erase` removes it. Programs compiled with it keep it alive. It is not part of a training's state.
  /// Throws ArgumentError if a variable that was not bound has the name.
  void bind(const std::string& name, const TensorSpec& spec, BufferPtr buffer);
  void bind(const std::string& name, const TensorSpec& spec, Storage storage);
  void erase(const std::string& name) { slots_.erase(name); }
  [[nodiscard]] bool contains(const std::string& name, VariableRole role) const;
  [[nodiscard]] bool contains(const std::string& name) const { return slots_.contains(name); }
  /// Waits for earlier work and copies to the host. Throws ArgumentError for an unknown name.
  [[nodiscard]] Tensor read(const std::string& name) const;
  /// Throws ArgumentError for an unknown name, ShapeError for another spec.
  void write(const std::string& name, const Tensor& value);
  /// As `write`, but the tensor must not change until all work that is enqueued now is done (Device::write_deferred).
  void write_deferred(const std::string& name, const Tensor& value);
  /// All names in alphabetical order.
  [[nodiscard]] std::vector<std::string> names() const;
  /// The names that a checkpoint contains: all except bound storage and variables of VariableRole::transient.
  [[nodiscard]] std::vector<std::string> persistent_names() const;
  /// The name of the variable with this role that belongs to the parameter, such as its average.
  [[nodiscard]] std::optional<std::string> related(const std::string& parameter, VariableRole role) const;
  /// All variables of this role: their names, and the parameter that each belongs to.
  [[nodiscard]] std::map<std::string, std::string> all_related(VariableRole role) const;
  [[nodiscard]] std::map<std::string, Tensor> read_all() const;
  /// Throws ArgumentError if the variables were moved from.
  [[nodiscard]] Device& device() const {
    if (!device_) refuse_moved("a Variables");
    return *device_;
  }
  [[nodiscard]] const DevicePtr& device_pointer() const { return device_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  struct Slot {
    TensorSpec spec;
    Storage storage;
    VariableRole role = VariableRole::own;
    std::string of = {};
    std::weak_ptr<const Variable> owner = {};  // the module's parameter
    bool bound = false;
  };
  Storage require(const Variable& variable, const VariablePtr& owner);
  /// The storage of this parameter under any name; empty if it has none.
  [[nodiscard]] std::optional<Storage> storage_of(const VariablePtr& variable) const;
  /// The storage of the variable that `value` replaces.
  [[nodiscard]] const Storage& buffer_for(const std::string& name, const Tensor& value) const;

  DevicePtr device_;
  std::uint64_t seed_;
  Sharing sharing_;
  std::map<std::string, Slot> slots_;
  std::map<std::weak_ptr<const Variable>, std::string, std::owner_less<>> names_;  // of parameters of modules
};
using VariablesPtr = std::shared_ptr<Variables>;

}  // namespace concord
