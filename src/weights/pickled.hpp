// The values of a pickle, and how PyTorch's functions describe storages and tensors in them. Internal to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "concord/io/element.hpp"

namespace concord::weights {

/// A storage as PyTorch's pickles name it.
struct PickledStorage {
  std::string_view key;
  const io::Element* element = nullptr;  // null: bytes, whose tensors bring their type
  std::uint64_t elements = 0;
  std::uint64_t first = 0;  // of a part of another storage
  std::uint64_t whole = 0;  // elements of that one; else the same as `elements`
};

/// A tensor as a window on a storage. Sizes are in elements of `element`. The window is inside the storage.
struct PickledTensor {
  PickledStorage storage;
  const io::Element* element = nullptr;
  std::uint64_t offset = 0;
  std::vector<std::int64_t> dims, strides;
  std::size_t byte = 0;  // where the pickle describes it
};

/// A value of a pickle.
struct Pickled {
  enum class Kind : std::uint8_t { none, whole, real, text, tuple, list, dict, global, storage, tensor };
  Kind kind = Kind::none;
  std::int64_t whole = 0;            // of a bool too; the index of a storage or tensor
  double real = 0;                   // also of a whole number beyond 64 bits: NaN
  std::string_view text = {};        // "torch FloatStorage" for a global
  std::vector<Pickled*> items = {};  // of a dict: key, value, key, value …
};

/// What is wrong with a pickle; the machine, which knows the file and the byte, makes a FormatError of it.
struct PickleProblem {
  std::string what;
};
/// Throws PickleProblem unless `right`.
void check_pickle(bool right, std::string_view what);

/// ('storage', type, key, place, elements[, (key, offset, elements) of a part of it]). Throws PickleProblem.
[[nodiscard]] PickledStorage storage_of(const Pickled& id);

/// (storage, offset, size, stride, …[, dtype]): a window, which is inside its storage, one of `storages`. `byte` is
/// left to the machine. Throws PickleProblem.
[[nodiscard]] PickledTensor tensor_of(const std::vector<Pickled*>& arguments, bool has_type,
                                      const std::vector<PickledStorage>& storages);

}  // namespace concord::weights
