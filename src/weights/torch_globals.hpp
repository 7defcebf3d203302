// The classes and functions that PyTorch's files may name, and their element types. Internal to the room.
#pragma once

#include <optional>
#include <string_view>

#include "concord/io/element.hpp"

namespace concord::weights {

/// Whether a pickle may name it: "torch FloatStorage".
[[nodiscard]] bool is_allowed_global(std::string_view global);
/// Whether it makes a tensor of a storage, an offset, a size and a stride.
[[nodiscard]] bool is_tensor_global(std::string_view global);
/// The element of "torch FloatStorage"; null for bytes of any type; nothing for another global.
[[nodiscard]] std::optional<const io::Element*> element_of_storage(std::string_view global);
/// The element of "torch float32"; null for another global.
[[nodiscard]] const io::Element* element_of_dtype(std::string_view global);

}  // namespace concord::weights
