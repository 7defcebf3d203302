// Variables: what persists on one device between runs — weights, optimizer state, running statistics, counters.
// Programs compiled with the same Variables share them (a training and an evaluation program of one network).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "concord/core/held.hpp"
#include "concord/device/device.hpp"
#include "concord/graph/graph.hpp"

namespace concord {

/// The first value of a variable: its `value`, else drawn by its initializer from Philox(seed, hash of name, index).
/// The same bits on every machine.
[[nodiscard]] Tensor initial_value(const Variable& variable, std::uint64_t seed);

/// Named, row-major tensors in the memory of one device.
class Variables {
 public:
  /// Throws ArgumentError when there is no device.
  Variables(DevicePtr device, std::uint64_t seed);

  /// The storage of `variable`, allocated and given its first value at the first call. Throws ShapeError when the
  /// name is taken by another spec.
  BufferPtr require(const Variable& variable);
  /// Storage that others made and share, such as a data set's, under a name of its own; `erase` forgets it again.
  /// Programs compiled with it keep it.
  void bind(const std::string& name, const TensorSpec& spec, BufferPtr buffer) {
    slots_.insert_or_assign(name, Slot{spec, std::move(buffer)});
  }
  void erase(const std::string& name) { slots_.erase(name); }
  [[nodiscard]] bool contains(const std::string& name) const { return slots_.contains(name); }
  [[nodiscard]] Tensor read(const std::string& name) const;
  /// Throws ArgumentError for an unknown name, ShapeError for another spec.
  void write(const std::string& name, const Tensor& value);
  /// As `write`, but the tensor stays as it is until what is enqueued by now is done (Device::write_kept).
  void write_kept(const std::string& name, const Tensor& value);
  /// Names in order.
  [[nodiscard]] std::vector<std::string> names() const;
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
  };
  /// Of a variable that `value` is to replace.
  [[nodiscard]] const BufferPtr& buffer_for(const std::string& name, const Tensor& value) const;

  DevicePtr device_;
  std::uint64_t seed_;
  std::map<std::string, Slot> slots_;
};
using VariablesPtr = std::shared_ptr<Variables>;

}  // namespace concord
