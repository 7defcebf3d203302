// The text form of protocol buffers, as Caffe's prototxt files have it. Internal to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace concord::caffe {

/// A message: fields in their order, each with a value or a message of its own.
class TextMessage {
 public:
  struct Field {
    std::string name, value;
    std::vector<TextMessage> message = {};  // one, or none for a field with a value
    std::size_t byte = 0;                   // where it begins
  };

  /// Throws FormatError with `where` and the byte.
  [[nodiscard]] static TextMessage parse(std::string_view text, const std::string& where);

  [[nodiscard]] std::vector<const TextMessage*> messages(std::string_view name) const;
  /// The last message of this name, or an empty one.
  [[nodiscard]] const TextMessage& message(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name, const std::string& otherwise = {}) const;
  /// Throws FormatError for a value that is not such a number.
  [[nodiscard]] std::vector<std::int64_t> whole_numbers(std::string_view name) const;
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] std::int64_t signed_whole(std::string_view name, std::int64_t otherwise) const;  // axes, levels
  [[nodiscard]] float real(std::string_view name, float otherwise) const;
  [[nodiscard]] bool is_on(std::string_view name, bool otherwise) const;

  std::vector<Field> fields = {};
  std::string where = {};  // "net.prototxt", for messages

 private:
  [[nodiscard]] const Field* last(std::string_view name) const;
  [[noreturn]] void refuse(const Field& field, std::string_view expected) const;
};

}  // namespace concord::caffe
