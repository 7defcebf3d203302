// Pickle: a machine for Python's pickles that executes nothing. It builds numbers, texts, lists, dictionaries and the
// descriptions of PyTorch's tensors; any other class or function is an error that names it. Internal to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "concord/weights/pickled.hpp"

namespace concord::weights {

/// One pickle, read to its end.
class Pickle {
 public:
  /// `bytes`, which names and keys point into, begin with the pickle, are `offset` bytes after the begin of what
  /// `where` names in messages, and must outlive the object. Throws FormatError with `where` and the byte.
  Pickle(std::string_view bytes, std::string where, std::size_t offset = 0);

  [[nodiscard]] const Pickled& value() const { return *value_; }
  [[nodiscard]] std::size_t bytes() const { return at_; }  // that it takes up
  [[nodiscard]] const PickledTensor& tensor(const Pickled& value) const {
    return tensors_[static_cast<std::size_t>(value.whole)];
  }
  [[nodiscard]] const std::vector<PickledTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<PickledStorage>& storages() const { return storages_; }

 private:
  class Machine;

  std::deque<Pickled> values_;  // flat, so that no depth of a file becomes a depth of calls
  std::vector<PickledStorage> storages_;
  std::vector<PickledTensor> tensors_;
  std::deque<std::string> names_;
  const Pickled* value_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace concord::weights
