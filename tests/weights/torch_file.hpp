// PyTorch's files that tests make, opcode by opcode, also wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/zip_file.hpp"

namespace concord::test {

[[nodiscard]] inline std::string pickled(const std::string& body) { return "\x80\x02" + body + "."; }

/// A legacy file with this object and these keys.
[[nodiscard]] inline std::string legacy(const std::string& object, const std::string& keys, const std::string& data) {
  const std::string magic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  const std::string little = "}X\x0d" + std::string(3, '\0') + "little_endian\x88s";
  return pickled(magic) + pickled("M\xe9\x03") + pickled(little) + pickled(object) + pickled(keys) + data;
}

[[nodiscard]] inline std::string text_of(const std::string& text) {
  return "X" + std::string(1, static_cast<char>(text.size())) + std::string(3, '\0') + text;
}

[[nodiscard]] inline std::string number(std::uint64_t value) {
  std::string text = "\x8a\x08";
  for (int i = 0; i < 8; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

/// A tensor of `storage` elements with these opcodes for offset, size and stride.
[[nodiscard]] inline std::string tensor_value(const std::string& storage, const std::string& window,
                                              const std::string& key = "0", const std::string& type = "Float") {
  const std::string id =
      "(" + text_of("storage") + "ctorch\n" + type + "Storage\n" + text_of(key) + text_of("cpu") + storage + "NtQ";
  return "ctorch._utils\n_rebuild_tensor\n(" + id + window + "tR";
}

/// {"w": such a tensor}
[[nodiscard]] inline std::string tensor_object(const std::string& storage, const std::string& window) {
  return "}" + text_of("w") + tensor_value(storage, window) + "s";
}

/// A vector of `elements` numbers, all of the storage `key`.
[[nodiscard]] inline std::string vector_value(std::uint64_t elements, const std::string& key = "0") {
  return tensor_value(number(elements), number(0) + number(elements) + "\x85" + number(1) + "\x85", key);
}

/// A dictionary of these names and opcodes of values.
[[nodiscard]] inline std::string dict_of(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string dict = "}";
  for (const auto& [name, value] : items) dict += text_of(name) + value + "s";
  return dict;
}

/// A file since version 1.6 with this object, whose storages, "0" and on, have these bytes.
[[nodiscard]] inline std::string torch_zip(const std::string& object, const std::vector<std::string>& storages) {
  std::vector<ZipEntry> entries{{"a/data.pkl", pickled(object)}, {"a/version", "3\n"}};
  for (const std::string& storage : storages) {
    entries.push_back({"a/data/" + std::to_string(entries.size() - 2), storage});
  }
  return zip_content(entries);
}

}  // namespace concord::test
