// .npy files: the header is a Python dictionary with the keys descr, fortran_order and shape.
#include "concord/io/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/element.hpp"

namespace concord::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // of the data, as numpy writes it

/// Kinds of numpy's type codes: "f4" is a float of 4 bytes.
struct NpyElement {
  std::string_view code;
  const char* element;  // of io::find_element
  DType kept;
};
constexpr NpyElement kNpyElements[] = {{"f2", "F16", DType::f32}, {"f4", "F32", DType::f32}, {"f8", "F64", DType::f32},
                                       {"i1", "I8", DType::i32},  {"i2", "I16", DType::i32}, {"i4", "I32", DType::i32},
                                       {"i8", "I64", DType::i32}, {"u1", "U8", DType::u8},   {"u2", "U16", DType::i32},
                                       {"u4", "U32", DType::i32}, {"u8", "U64", DType::i32}, {"b1", "U8", DType::u8}};

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the dictionary from its text; `begin` is where that stands in the file.
class HeaderParser {
 public:
  HeaderParser(std::string file, std::string_view text, std::size_t begin)
      : file_(std::move(file)), text_(text), begin_(begin) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        skip_space();
        if (at_ < text_.size() && text_[at_] == '[') fail("the array has fields; only arrays of one type are read");
        header.descr = quoted();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = word() == "True";
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = sizes();
      } else {
        fail(fmt::format("the header has the key '{}' that is unknown or there twice", key));
      }
      if (take('}')) break;
      expect(',');
    }
    if (!has_descr || !has_order || !has_shape) fail("the header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view message) const {
    throw FormatError(fmt::format("{}, byte {}: {}", file_, begin_ + at_, message));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("'{}' was expected in the header", wanted));
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("a text in quotes was expected in the header");
    const std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return text;
  }
  std::string_view word() {
    skip_space();
    for (const std::string_view known : {"True", "False"}) {
      if (text_.substr(at_).starts_with(known)) {
        at_ += known.size();
        return known;
      }
    }
    fail("True or False was expected in the header");
  }
  std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!take(')')) {
      skip_space();
      std::int64_t size = 0;
      const char* const first = text_.data() + at_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), size);
      if (error != std::errc{} || size < 0) fail("the shape has something else than sizes");
      at_ += static_cast<std::size_t>(end - first);
      sizes.push_back(size);
      if (take(')')) break;
      expect(',');
    }
    return sizes;
  }

  std::string file_;
  std::string_view text_;
  std::size_t begin_, at_ = 0;
};

/// Row-major from column-major, which has the first axis innermost.
Tensor row_major(const Tensor& from) {
  Tensor to(from.spec());
  const auto dims = from.shape().dims();
  const std::size_t bytes = size_of(from.dtype());
  std::vector<std::int64_t> index(dims.size());
  for (std::int64_t place = 0; place < from.elements(); ++place) {
    std::int64_t at = 0, stride = 1;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      at += index[axis] * stride;
      stride *= dims[axis];
    }
    std::ranges::copy(from.bytes().subspan(static_cast<std::size_t>(at) * bytes, bytes),
                      to.bytes().subspan(static_cast<std::size_t>(place) * bytes).begin());
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return to;
}

/// The bytes of an array, in the byte order of the host; `swapped` has them where that is another one.
std::string_view in_host_order(std::string_view data, char order, std::size_t element, std::string& swapped) {
  const bool is_big = order == '>';
  if (element == 1 || is_big == (std::endian::native == std::endian::big)) return data;
  swapped = data;
  std::string& bytes = swapped;
  for (std::size_t i = 0; i + element <= bytes.size(); i += element) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + element));
  }
  return bytes;
}

/// The number of elements, or nothing if it is larger than `most`, or than a Shape takes.
std::optional<std::uint64_t> elements_of(const std::vector<std::int64_t>& shape, std::uint64_t most) {
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  if (is_empty) most = (std::uint64_t{1} << 62) - 1;
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) {
    const std::uint64_t factor = std::max<std::uint64_t>(static_cast<std::uint64_t>(size), 1);
    if (factor > most / elements) return std::nullopt;
    elements *= factor;
  }
  return is_empty ? 0 : elements;
}

}  // namespace

NpyArray parse_npy_array(std::string_view content, std::string_view subject) {
  const std::string file(subject);
  const auto fail = [&](std::size_t byte, std::string_view message) {
    throw FormatError(fmt::format("{}, byte {}: {}", file, byte, message));
  };
  if (!content.starts_with(kMagic)) fail(0, "this is no .npy file");
  const auto byte_at = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(content[at]));
  };
  const std::size_t version = content.size() > kMagic.size() ? byte_at(kMagic.size()) : 0;
  if (version < 1 || version > 3) fail(kMagic.size(), fmt::format("the version {} is not 1, 2 or 3", version));
  const std::size_t length_at = kMagic.size() + 2, length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = length_at + length_bytes;
  std::size_t length = 0;
  if (content.size() < begin) fail(content.size(), "the file ends in the header");
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8U | byte_at(length_at + i);
  if (length > content.size() - begin) fail(length_at, "the file ends in the header");
  const NpyHeader header = HeaderParser(file, content.substr(begin, length), begin).parse();

  const char order = header.descr.empty() ? ' ' : header.descr[0];
  const auto* const element = std::ranges::find(
      kNpyElements, header.descr.empty() ? std::string_view() : std::string_view(header.descr).substr(1),
      &NpyElement::code);
  if (element == std::end(kNpyElements) || std::string_view("<>|=").find(order) == std::string_view::npos) {
    fail(begin,
         fmt::format("the element type '{}' is not read; float16, 32 and 64, integers and bool are", header.descr));
  }
  const Element& stored = *find_element(element->element);
  const std::size_t data_at = begin + length;
  if (header.shape.size() > Shape::kMaxRank) {
    fail(begin, fmt::format("the array has {} dimensions; the limit is {}", header.shape.size(), Shape::kMaxRank));
  }
  const auto elements = elements_of(header.shape, (content.size() - data_at) / stored.bytes);
  if (!elements || *elements * stored.bytes != content.size() - data_at) {
    fail(data_at, fmt::format("an array [{}] of {} bytes each does not have the {} bytes that follow",
                              fmt::join(header.shape, ", "), stored.bytes, content.size() - data_at));
  }
  std::string swapped;
  const std::string_view data = in_host_order(content.substr(data_at), order, stored.bytes, swapped);
  Tensor tensor(element->kept, Shape(header.shape));
  if (const auto misfit = convert(stored, std::as_bytes(std::span(data)), tensor)) {
    fail(data_at + misfit->index * stored.bytes, fmt::format("element {} is {}, outside the range of {}", misfit->index,
                                                             misfit->number, name_of(element->kept)));
  }
  const bool is_boolean = element->code == "b1";
  if (is_boolean) {
    for (std::uint8_t& flag : tensor.values<std::uint8_t>()) flag = flag != 0 ? 1 : 0;
  }
  return {header.fortran_order && header.shape.size() > 1 ? row_major(tensor) : tensor, is_boolean};
}

Tensor parse_npy(std::string_view content, std::string_view subject) {
  return parse_npy_array(content, subject).tensor;
}

Tensor read_npy(const std::filesystem::path& path) { return parse_npy(read_file(path), printable(path.string())); }

namespace {

template <class Number>
void append_number(std::string& data, Number number) {
  if constexpr (std::endian::native == std::endian::big && sizeof(Number) > 1) {
    auto bytes = std::bit_cast<std::array<char, sizeof(Number)>>(number);
    std::ranges::reverse(bytes);
    data.append(bytes.data(), bytes.size());
  } else {
    data.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
}

/// The data of the array; sets its type code.
std::string data_of(const Tensor& tensor, NpyType as, std::string_view& code) {
  std::string data;
  const auto append = [&](auto numbers, std::string_view of, auto convert_one) {
    code = of;
    for (const auto number : numbers) append_number(data, convert_one(number));
  };
  const auto same = [](auto number) { return number; };
  const DType type = tensor.dtype();
  CONCORD_CHECK((as != NpyType::int64 || type == DType::i32) && (as != NpyType::boolean || type == DType::u8),
                ArgumentError, "write_npy: an array of {} cannot be written as {}", name_of(type),
                as == NpyType::int64 ? "int64, which needs i32" : "bool, which needs u8");
  if (as == NpyType::int64) {
    append(tensor.values<std::int32_t>(), "<i8", [](std::int32_t number) { return std::int64_t{number}; });
  } else if (type == DType::i32) {
    append(tensor.values<std::int32_t>(), "<i4", same);
  } else if (type == DType::u8) {
    append(tensor.values<std::uint8_t>(), as == NpyType::boolean ? "|b1" : "|u1", [&](std::uint8_t number) {
      return as == NpyType::boolean ? static_cast<std::uint8_t>(number != 0) : number;
    });
  } else if (type == DType::f32) {
    append(tensor.values<float>(), "<f4", same);
  } else {
    Tensor wide(DType::f32, tensor.shape());
    static_cast<void>(convert(element_of(type), tensor.bytes(), wide));
    return data_of(wide, NpyType::same, code);
  }
  return data;
}

}  // namespace

void write_npy(const std::filesystem::path& path, const Tensor& tensor, NpyType as) {
  std::string_view code;
  const std::string data = data_of(tensor, as, code);
  const auto dims = tensor.shape().dims();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", code,
                                   fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
  const std::size_t before = kMagic.size() + 4;
  header.append(kAlignment - (before + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string content(kMagic);
  content += {'\x01', '\x00', static_cast<char>(header.size() & 0xFFU), static_cast<char>(header.size() >> 8U)};
  content += header + data;
  write_file_atomically(path, std::as_bytes(std::span(content)));
}

}  // namespace concord::io
