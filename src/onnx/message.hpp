// Message: one message of the wire format, read field by field. It adds to protozero what a reader of files needs:
// wrong wire types are errors, not assertions, and an error names the file and the byte. Internal to the room.
#pragma once

#include <concepts>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace concord::onnx {

/// What all messages of a file share.
struct Image {
  std::string file;
  const char* begin = nullptr;
  [[noreturn]] void fail(const char* at, std::string_view message) const;
};

class Message {
 public:
  /// `name` is that of the message in onnx.proto, for errors. Throws FormatError for too many messages within each
  /// other.
  Message(const Image& image, protozero::data_view view, const char* name, int depth);

  /// Calls read(tag) for each field; one that it does not read is skipped.
  template <std::invocable<std::uint32_t> Read>
  void each_field(Read&& read) {
    while (next()) {
      read(tag_);
      finish_field();
    }
  }

  // The current field.
  [[nodiscard]] std::int64_t integer();
  [[nodiscard]] float single();
  /// Text in UTF-8.
  [[nodiscard]] std::string text();
  [[nodiscard]] std::string bytes() { return std::string(view()); }
  [[nodiscard]] std::string_view view();
  [[nodiscard]] Message message(const char* name) { return {image_, data(), name, depth_ + 1}; }
  // Repeated numbers, packed or not.
  void append(std::vector<std::int64_t>& values);
  void append(std::vector<float>& values);
  void append(std::vector<double>& values);
  void append(std::vector<std::uint64_t>& values);

  /// Throws FormatError at the message's first byte.
  [[noreturn]] void fail(std::string_view message) const;
  void require(bool condition, std::string_view message) const {
    if (!condition) fail(message);
  }

 private:
  bool next();
  void finish_field();
  protozero::data_view data();
  void expect(protozero::pbf_wire_type type);
  template <class Read>
  auto guarded(Read&& read) -> decltype(read());

  const Image& image_;
  protozero::pbf_reader reader_;
  const char* begin_;
  const char* field_ = nullptr;  // where the current field begins
  std::uint32_t tag_ = 0;
  const char* name_;
  int depth_;
  bool pending_ = false;  // the current field is not read yet
};

}  // namespace concord::onnx
