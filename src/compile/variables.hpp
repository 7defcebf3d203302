// Variables: what persists on one device between runs — weights, optimizer state, running statistics, counters.
// Programs compiled with the same Variables share them (a training and an evaluation program of one network).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/held.hpp"
#include "concord/device/device.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// The first value of a variable: its `value`, else drawn by its initializer from Philox(seed, hash of name, index).
/// The same bits on every machine.
[[nodiscard]] Tensor initial_value(const Variable& variable, std::uint64_t seed);

/// Whether networks that were built separately may share weights, as far as these have equal names: a module shares its
/// parameters with its copies alone, so two networks of one shape in one Variables are a mistake unless said otherwise.
enum class Sharing : std::uint8_t { by_module, by_name };

/// Named, row-major tensors in the memory of one device.
class Variables {
 public:
  /// Throws ArgumentError when there is no device.
  Variables(DevicePtr device, std::uint64_t seed, Sharing sharing = Sharing::by_module);

  /// The storage of `variable`, allocated and given its first value at the first call. Throws ShapeError when the
  /// name is taken by another spec, ArgumentError when it is taken by a variable for another purpose.
  BufferPtr require(const Variable& variable) { return require(variable, nullptr); }
  /// As the graph names it, "0.weight". A parameter that has another name in a program before, because it was part of
  /// another network there, has the storage of that. Throws ArgumentError, too, when the name is taken by the parameter
  /// of another network that still exists (see Sharing).
  BufferPtr require(const VariablePtr& variable, const std::string& name);
  /// Storage that others made and share, such as a data set's, under a name of its own; `erase` forgets it again.
  /// Programs compiled with it keep it. Not part of a training's state. Throws ArgumentError when the name is taken by
  /// a variable.
  void bind(const std::string& name, const TensorSpec& spec, BufferPtr buffer);
  void erase(const std::string& name) { slots_.erase(name); }
  [[nodiscard]] bool contains(const std::string& name, VariableRole role) const;
  [[nodiscard]] bool contains(const std::string& name) const { return slots_.contains(name); }
  [[nodiscard]] Tensor read(const std::string& name) const;
  /// Throws ArgumentError for an unknown name, ShapeError for another spec.
  void write(const std::string& name, const Tensor& value);
  /// As `write`, but the tensor stays as it is until what is enqueued by now is done (Device::write_kept).
  void write_kept(const std::string& name, const Tensor& value);
  /// Names in order.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Those that a checkpoint keeps: all but what is bound and what is marked VariableRole::transient.
  [[nodiscard]] std::vector<std::string> persistent_names() const;
  /// The average of this parameter, or what else of this role belongs to it, by name.
  [[nodiscard]] std::optional<std::string> related(const std::string& parameter, VariableRole role) const;
  /// All of this role, with the parameter that each belongs to.
  [[nodiscard]] std::map<std::string, std::string> all_related(VariableRole role) const;
  [[nodiscard]] std::map<std::string, Tensor> read_all() const;
  /// Throws ArgumentError when the variables were moved from.
  [[nodiscard]] Device& device() const {
    if (!device_) refuse_moved("a Variables");
    return *device_;
  }
  [[nodiscard]] const DevicePtr& device_pointer() const { return device_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  struct Slot {
    TensorSpec spec;
    BufferPtr buffer;
    VariableRole role = VariableRole::own;
    std::string of = {};
    std::weak_ptr<const Variable> owner = {};  // of a module's parameter
    bool bound = false;
  };
  BufferPtr require(const Variable& variable, const VariablePtr& owner);
  /// The storage of this parameter, under whatever name; null when it has none.
  [[nodiscard]] BufferPtr storage_of(const VariablePtr& variable) const;
  /// Of a variable that `value` is to replace.
  [[nodiscard]] const BufferPtr& buffer_for(const std::string& name, const Tensor& value) const;

  DevicePtr device_;
  std::uint64_t seed_;
  Sharing sharing_;
  std::map<std::string, Slot> slots_;
  std::map<std::weak_ptr<const Variable>, std::string, std::owner_less<>> names_;  // of modules' parameters
};
using VariablesPtr = std::shared_ptr<Variables>;

}  // namespace concord
