// The tensors of a PyTorch file under the names of a state_dict. Internal to the room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "concord/weights/pickle.hpp"
#include "concord/weights/reader.hpp"

namespace concord::weights {

struct TorchState {
  std::map<std::string, PickledTensor> tensors;
  std::vector<std::string> notes;
};

/// Finds the tensors of a pickle: those of a dictionary, or of the one inside that usually has the weights
/// ("state_dict", "model", …), even with single numbers beside it. The notes say which, and what was left out. Names of
/// dictionaries and lists inside are joined by dots. Throws FormatError that begins with `where`.
[[nodiscard]] TorchState torch_state(const Pickle& pickle, const std::string& where);

/// The elements of a tensor, row-major. `storage` has the bytes of its whole storage.
[[nodiscard]] std::vector<std::byte> gather(const PickledTensor& tensor, std::span<const std::byte> storage);

}  // namespace concord::weights
