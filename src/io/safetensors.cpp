// safetensors files. Reading trusts nothing: every field is checked against the file before it is used.
#include "concord/io/safetensors.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/element.hpp"
#include "concord/io/foreign_format.hpp"

namespace concord::io {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kPrefix = 8;                   // bytes of the header length
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the limit of the reference implementation
constexpr const char* kMetadata = "__metadata__";

// The file is little-endian; on such a host nothing happens.
void swap_to_host(std::span<std::byte> bytes, std::size_t element) {
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i < bytes.size(); i += element) std::ranges::reverse(bytes.subspan(i, element));
  }
}

}  // namespace

class SafetensorsFile::Reader {
 public:
  struct Entry {
    std::string name;
    const Element* element = nullptr;
    std::vector<std::int64_t> dims;
    std::uint64_t begin = 0, end = 0;  // in the data
  };

  explicit Reader(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    const bool is_there = std::filesystem::exists(path, error);
    CONCORD_CHECK(!error, IoError, "cannot open {}: {}", printable(path.string()), error.message());
    CONCORD_CHECK(is_there, IoError, "cannot open {}: no such file", printable(path.string()));
    CONCORD_CHECK(std::filesystem::is_regular_file(path, error), IoError, "cannot read {}: not a regular file",
                  printable(path.string()));
    file_bytes_ = std::filesystem::file_size(path, error);
    CONCORD_CHECK(!error, IoError, "cannot read {}: {}", printable(path.string()), error.message());
    file_.open(path, std::ios::binary);
    if (!file_.is_open()) fail_to_open(path);
    for (Entry& entry : read_header()) {
      tensors.emplace(entry.name, TensorEntry{entry.element->name, Shape(entry.dims)});
      std::string name = entry.name;
      entries_.emplace(std::move(name), std::move(entry));
    }
  }

  std::map<std::string, std::string> metadata = {};
  std::map<std::string, TensorEntry> tensors = {};

  [[nodiscard]] Tensor read(const std::string& name) { return read_as(name, natural_type(*entry_of(name).element)); }

  [[nodiscard]] Tensor read_as(const std::string& name, DType type) {
    const Entry& entry = entry_of(name);
    const Element& element = *entry.element;
    Tensor tensor(type, Shape(entry.dims));
    if (element.type == type) {
      read_numbers(entry, tensor.bytes());
      return tensor;
    }
    if (!is_convertible(element, type, name)) {
      fail_entry(name, fmt::format("dtype {} cannot be converted to {}", element.name, name_of(type)));
    }
    std::vector<std::byte> numbers(entry.end - entry.begin);
    read_numbers(entry, numbers);
    if (const auto misfit = convert(element, numbers, tensor)) {
      fail(data_ + entry.begin + misfit->index * element.bytes, name,
           fmt::format("element {} is {}, outside the range of {}", misfit->index, misfit->number, name_of(type)));
    }
    return tensor;
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, std::string_view field, std::string_view message) const {
    throw FormatError(fmt::format("{}, byte {}: {}: {}", printable(path_.string()), offset, field, message));
  }

  // Says where in the header the entry of a tensor is.
  [[noreturn]] void fail_entry(const std::string& name, std::string_view message) const {
    const std::size_t at = header_.find(Json(name).dump());
    fail(kPrefix + (at == std::string::npos ? 0 : at), name, message);
  }

  [[nodiscard]] const Entry& entry_of(const std::string& name) const {
    const auto found = entries_.find(name);
    CONCORD_CHECK(found != entries_.end(), ArgumentError, "{} has no tensor '{}'", printable(path_.string()), name);
    return found->second;
  }

  void read_numbers(const Entry& entry, std::span<std::byte> numbers) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(data_ + entry.begin));
    read_bytes(numbers, data_ + entry.begin, entry.name);
    swap_to_host(numbers, entry.element->bytes);
  }

  /// Says what the file is instead, where that is known.
  void refuse_foreign_format() {
    std::string begin(64, '\0');
    file_.clear();
    file_.seekg(0);
    file_.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<std::size_t>(file_.gcount()));
    const std::string what = foreign_format(path_, begin);
    if (!what.empty()) throw FormatError(fmt::format("{}, byte 0: {}", printable(path_.string()), what));
  }

  void read_bytes(std::span<std::byte> bytes, std::uint64_t offset, std::string_view field) {
    file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (static_cast<std::size_t>(file_.gcount()) != bytes.size()) fail(offset, field, "the file ends too early");
  }

  Json parse_header() {
    std::array<std::byte, kPrefix> prefix{};
    if (file_bytes_ < kPrefix) {
      refuse_foreign_format();
      fail(0, "header length",
           fmt::format("the file has {} bytes: it is cut off, or not a safetensors file", file_bytes_));
    }
    read_bytes(prefix, 0, "header length");
    std::uint64_t length = 0;
    for (std::size_t i = kPrefix; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(prefix[i]);
    if (length > file_bytes_ - kPrefix || length > kLongestHeader) {
      refuse_foreign_format();
      fail(0, "header length",
           fmt::format("{} bytes; the file has {} more, the limit is {}: it is damaged, or not a safetensors file",
                       length, file_bytes_ - kPrefix, kLongestHeader));
    }
    header_.resize(length);
    read_bytes(std::as_writable_bytes(std::span(header_)), kPrefix, "header");
    data_ = kPrefix + length;

    constexpr int kDepth = 3;
    try {
      return parse_json(header_, "header", {.bytes = kLongestHeader, .depth = kDepth});
    } catch (const JsonError& error) {
      fail(kPrefix + error.byte(), "header", error.problem() + ": the file is damaged, or not a safetensors file");
    }
  }

  Entry read_entry(const std::string& name, const Json& json) const {
    const auto check = [&](bool right, std::string_view message) {
      if (!right) fail_entry(name, message);
    };
    check(json.is_object() && json.size() == 3 && json.contains("dtype") && json.contains("shape") &&
              json.contains("data_offsets"),
          "is not {dtype, shape, data_offsets}");
    const Json& dtype = json["dtype"];
    const Json& shape = json["shape"];
    const Json& offsets = json["data_offsets"];
    check(dtype.is_string(), "dtype is not a string");
    Entry entry;
    entry.name = name;
    entry.element = find_element(dtype.get_ref<const std::string&>());
    if (entry.element == nullptr) check(false, fmt::format("dtype {} is unknown", dtype.dump()));
    check(
        offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned(),
        "data_offsets are not two numbers");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    if (entry.begin > entry.end || entry.end > file_bytes_ - data_) {
      check(false, fmt::format("data_offsets [{}, {}] are outside the {} bytes of data: the file is cut off or damaged",
                               entry.begin, entry.end, file_bytes_ - data_));
    }
    check(shape.is_array() && shape.size() <= Shape::kMaxRank, "shape is not a list of at most 8 numbers");
    std::uint64_t bytes = entry.element->bytes;
    bool empty = false;
    for (const Json& dim : shape) {
      check(dim.is_number_unsigned(), "shape contains a value that is not a number");
      const std::uint64_t size = dim;
      constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
      check(size <= kMost && (size == 0 || bytes <= kMost / size), "shape is too large");
      empty = empty || size == 0;
      bytes *= std::max<std::uint64_t>(size, 1);  // the size of the others is limited next to a 0 too
      entry.dims.push_back(static_cast<std::int64_t>(size));
    }
    if (empty) bytes = 0;
    if (bytes != entry.end - entry.begin) {
      check(false, fmt::format("{} {} needs {} bytes, but data_offsets hold {}", dtype.dump(), shape.dump(), bytes,
                               entry.end - entry.begin));
    }
    return entry;
  }

  // Entries in the order of their data.
  std::vector<Entry> read_header() {
    const Json header = parse_header();
    if (!header.is_object()) fail(kPrefix, "header", "is not a JSON object");
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name != kMetadata) {
        entries.push_back(read_entry(name, value));
        continue;
      }
      if (!value.is_object()) fail(kPrefix, kMetadata, "is not a JSON object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) fail(kPrefix, kMetadata, fmt::format("the value of \"{}\" is not a string", key));
        metadata.emplace(key, text);
      }
    }
    std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
    std::uint64_t end = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != end) {
        fail(data_ + entry.begin, entry.name,
             fmt::format("begins at byte {} of the data, but the tensor before it ends at {}", entry.begin, end));
      }
      end = entry.end;
    }
    if (end != file_bytes_ - data_) {
      fail(data_ + end, "data", fmt::format("{} bytes belong to no tensor", file_bytes_ - data_ - end));
    }
    return entries;
  }

  std::filesystem::path path_;
  std::ifstream file_;
  std::string header_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t data_ = 0;  // offset of the data in the file
  std::map<std::string, Entry> entries_;
};

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : reader_(std::make_unique<Reader>(path)) {}
SafetensorsFile::~SafetensorsFile() = default;
const std::map<std::string, TensorEntry>& SafetensorsFile::tensors() const { return reader_->tensors; }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return reader_->metadata; }
Tensor SafetensorsFile::read(const std::string& name) { return reader_->read(name); }
Tensor SafetensorsFile::read_as(const std::string& name, DType type) { return reader_->read_as(name, type); }
bool SafetensorsFile::is_readable_as(const std::string& name, DType type) const {
  const auto found = reader_->tensors.find(name);
  return found != reader_->tensors.end() && is_convertible(*find_element(found->second.dtype), type, name);
}

Safetensors read_safetensors(const std::filesystem::path& path, const std::function<bool(std::string_view)>& wanted) {
  SafetensorsFile file(path);
  Safetensors result{{}, file.metadata()};
  for (const auto& [name, entry] : file.tensors()) {
    if (!wanted || wanted(name)) result.tensors.emplace(name, file.read(name));
  }
  return result;
}

void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Large elements first, as the reference implementation does: every tensor is then aligned to its element.
  std::vector<const TensorMap::value_type*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto* t) { return size_of(t->second.dtype()); });

  // As text: the destructor of a JSON object allocates, and ends the process where there is no memory.
  const auto quoted = [&](const std::string& words) {
    try {
      return Json(words).dump();
    } catch (const Json::exception&) {
      throw ArgumentError(fmt::format("cannot write {}: the name of a tensor or a string of the metadata is not UTF-8",
                                      printable(path.string())));
    }
  };
  std::vector<std::string> fields;
  for (const auto& [key, value] : metadata) fields.push_back(fmt::format("{}:{}", quoted(key), quoted(value)));
  if (!fields.empty()) fields = {fmt::format("\"{}\":{{{}}}", kMetadata, fmt::join(fields, ","))};
  std::uint64_t offset = 0;
  for (const auto* item : order) {
    const auto& [name, tensor] = *item;
    CONCORD_CHECK(!name.empty() && name != kMetadata, ArgumentError, "cannot write {}: a tensor is named \"{}\"",
                  printable(path.string()), name);
    CONCORD_CHECK(tensor.bytes().size() == tensor.spec().bytes(), ArgumentError,
                  "cannot write {}: the tensor \"{}\" is empty: it was moved from", printable(path.string()), name);
    const std::uint64_t end = offset + tensor.bytes().size();
    fields.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(name),
                                 element_of(tensor.dtype()).name, fmt::join(tensor.shape().dims(), ","), offset, end));
    offset = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(fields, ","));
  text.append((kPrefix - text.size() % kPrefix) % kPrefix, ' ');
  CONCORD_CHECK(text.size() <= kLongestHeader, ArgumentError, "cannot write {}: its header of {} bytes is too long",
                printable(path.string()), text.size());

  AtomicFile file(path);
  std::array<std::byte, kPrefix> prefix{};
  for (std::size_t i = 0; i < kPrefix; ++i) prefix[i] = static_cast<std::byte>(text.size() >> (8 * i));
  file.write(prefix);
  file.write(std::as_bytes(std::span(text)));
  for (const auto* item : order) {
    if constexpr (std::endian::native == std::endian::big) {
      Tensor swapped = item->second.clone();
      swap_to_host(swapped.bytes(), size_of(swapped.dtype()));
      file.write(swapped.bytes());
    } else {
      file.write(item->second.bytes());
    }
  }
  file.commit();
}

}  // namespace concord::io
