// The values of a TensorProto, which a file keeps in one of eight places. Internal to the room.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "concord/onnx/message.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {

/// Where a file is, for its external data, and who holds its bytes.
struct Source {
  Image image;
  std::shared_ptr<const std::string> holder;
  std::filesystem::path folder;  // empty: no external data
};

/// A key and its text (StringStringEntryProto).
[[nodiscard]] std::pair<std::string, std::string> read_pair(Message message);
[[nodiscard]] TensorProto read_tensor_message(const Source& source, Message message);

}  // namespace concord::onnx
