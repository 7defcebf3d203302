// Message: see message.hpp.
#include "concord/onnx/message.hpp"

#include <protozero/exception.hpp>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::onnx {
namespace {

constexpr int kDeepest = 64;  // messages within each other; a graph in a graph takes three

}  // namespace

void Image::fail(const char* at, std::string_view message) const {
  throw FormatError(fmt::format("{}, byte {}: {}", file, at - begin, message));
}

Message::Message(const Image& image, protozero::data_view view, const char* name, int depth)
    : image_(image), reader_(view), begin_(view.data()), name_(name), depth_(depth) {
  require(depth <= kDeepest, fmt::format("more than {} messages are nested", kDeepest));
}

void Message::fail(std::string_view message) const { image_.fail(begin_, fmt::format("{}: {}", name_, message)); }

template <class Read>
auto Message::guarded(Read&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    image_.fail(field_, fmt::format("{}: {}: the file is damaged, or not an ONNX file", name_, error.what()));
  }
}

bool Message::next() {
  field_ = reader_.data().data();
  pending_ = guarded([&] { return reader_.next(); });
  tag_ = reader_.tag();
  return pending_;
}

void Message::finish_field() {
  if (pending_) guarded([&] { reader_.skip(); });
  pending_ = false;
}

void Message::expect(protozero::pbf_wire_type type) {
  if (!reader_.has_wire_type(type)) {
    image_.fail(field_,
                fmt::format("{}: field {} has wire type {}, not {}: the file is damaged, or not an ONNX file", name_,
                            reader_.tag(), static_cast<int>(reader_.wire_type()), static_cast<int>(type)));
  }
  pending_ = false;
}

std::int64_t Message::integer() {
  expect(protozero::pbf_wire_type::varint);
  return guarded([&] { return reader_.get_int64(); });
}

float Message::single() {
  expect(protozero::pbf_wire_type::fixed32);
  return guarded([&] { return reader_.get_float(); });
}

protozero::data_view Message::data() {
  expect(protozero::pbf_wire_type::length_delimited);
  return guarded([&] { return reader_.get_view(); });
}

std::string_view Message::view() {
  const protozero::data_view view = data();
  return {view.data(), view.size()};
}

std::string Message::text() {
  const std::string_view read = view();
  if (!is_utf8(read)) image_.fail(field_, fmt::format("{}: field {} is not UTF-8", name_, tag_));
  return std::string(read);
}

void Message::append(std::vector<std::int64_t>& values) {
  if (reader_.has_wire_type(protozero::pbf_wire_type::varint)) {
    values.push_back(integer());
    return;
  }
  expect(protozero::pbf_wire_type::length_delimited);
  guarded([&] {
    for (const std::int64_t value : reader_.get_packed_int64()) values.push_back(value);
  });
}

void Message::append(std::vector<std::uint64_t>& values) {
  std::vector<std::int64_t> same_bits;
  append(same_bits);
  for (const std::int64_t value : same_bits) values.push_back(static_cast<std::uint64_t>(value));
}

void Message::append(std::vector<float>& values) {
  if (reader_.has_wire_type(protozero::pbf_wire_type::fixed32)) {
    values.push_back(single());
    return;
  }
  expect(protozero::pbf_wire_type::length_delimited);
  guarded([&] {
    const auto range = reader_.get_packed_float();
    values.insert(values.end(), range.begin(), range.end());
  });
}

void Message::append(std::vector<double>& values) {
  if (reader_.has_wire_type(protozero::pbf_wire_type::fixed64)) {
    expect(protozero::pbf_wire_type::fixed64);
    values.push_back(guarded([&] { return reader_.get_double(); }));
    return;
  }
  expect(protozero::pbf_wire_type::length_delimited);
  guarded([&] {
    const auto range = reader_.get_packed_double();
    values.insert(values.end(), range.begin(), range.end());
  });
}

}  // namespace concord::onnx
