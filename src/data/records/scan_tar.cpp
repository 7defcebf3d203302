// The scan of a shard. libarchive reads the headers, through pread and without the images between them; it knows long
// names (PAX, GNU), sparse files and large numbers. It gives the place of headers, not of contents: contents end,
// padded to blocks of 512 bytes, where the next header begins.
#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/array_file.hpp"
#include "concord/data/records/tar_index.hpp"

namespace concord::data {
namespace {

constexpr std::uint64_t kTarBlock = 512;
constexpr std::uint64_t kMostLabelBytes = 256, kMostJsonBytes = 1 << 20;

/// What libarchive reads from.
struct TarInput {
  const StoredFile& file;
  std::uint64_t offset = 0;
  std::array<std::byte, 1 << 14> block{};
  std::string error = {};
};

la_ssize_t read_tar_block(archive* reader, void* data, const void** block) {
  auto& input = *static_cast<TarInput*>(data);
  try {
    const std::size_t bytes = input.file.read_some(input.offset, input.block);
    input.offset += bytes;
    *block = input.block.data();
    return static_cast<la_ssize_t>(bytes);
  } catch (const Error& error) {
    input.error = error.what();
    archive_set_error(reader, EIO, "%s", "read error");
    return ARCHIVE_FATAL;
  }
}

// Not beyond the end, where a file that is cut off would seem to be whole.
la_int64_t skip_in_tar(archive* /*reader*/, void* data, la_int64_t bytes) {
  auto& input = *static_cast<TarInput*>(data);
  const std::uint64_t left = input.file.stamp().bytes - std::min(input.file.stamp().bytes, input.offset);
  const std::uint64_t skipped = std::min(static_cast<std::uint64_t>(std::max<la_int64_t>(bytes, 0)), left);
  input.offset += skipped;
  return static_cast<la_int64_t>(skipped);
}

enum class TarFieldKind : std::uint8_t { image, label, json, mask, other };

struct TarName {
  std::string_view key;
  TarFieldKind kind = TarFieldKind::other;
};

TarFieldKind tar_field_kind(std::string_view extension) {
  constexpr std::array<std::string_view, 8> kImages = {"jpg", "jpeg", "png", "ppm", "pgm", "pnm", "bmp", "img"};
  const std::string text = lower(extension);
  if (std::find(kImages.begin(), kImages.end(), text) != kImages.end()) return TarFieldKind::image;
  if (text == "cls") return TarFieldKind::label;
  if (text == "json") return TarFieldKind::json;
  if (text == kArrayExtension) return TarFieldKind::image;
  return text == "seg.png" || text == "mask.png" ? TarFieldKind::mask : TarFieldKind::other;
}

// WebDataset's rule. Names that begin with a point, and its own "__…__", are no samples.
TarName split_tar_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t point = path.find('.', base);
  if (point == std::string_view::npos || point == base) return {};
  const std::string_view stem = path.substr(base, point - base);
  if (stem.size() > 4 && stem.starts_with("__") && stem.ends_with("__")) return {};
  return {path.substr(0, point), tar_field_kind(path.substr(point + 1))};
}

bool leads_outside(std::string_view path) {
  if (path.starts_with('/')) return true;
  const std::vector<std::string> parts = concord::split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Also 3.0 stays a target.
std::string with_point(std::string number) {
  return number.find_first_of(".en") == std::string::npos ? number + ".0" : number;
}

// The label that a JSON text has; empty if it has none.
std::string label_in_json(std::string_view text, const std::string& place) {
  return read_json(text, place, [&](const nlohmann::json& json) -> std::string {
    if (!json.is_object()) return {};
    for (const char* const name : {"label", "class"}) {
      if (!json.contains(name)) continue;
      const nlohmann::json& value = json.at(name);
      if (value.is_string()) return value.get<std::string>();
      if (value.is_number_unsigned()) return fmt::format("{}", value.get<std::uint64_t>());
      if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
      if (value.is_number_float()) return with_point(fmt::format("{}", value.get<double>()));
      throw FormatError(fmt::format("{}: \"{}\" is neither a number nor a text", place, name));
    }
    return {};
  });
}

class TarScan {
 public:
  TarScan(const StoredFile& shard, const std::string& name)
      : input_{shard}, name_(name), reader_(archive_read_new(), archive_read_free) {
    if (reader_ == nullptr) throw OutOfMemory("no memory for libarchive");
  }

  TarIndex scan() {
    check_beginning();
    archive_read_support_format_tar(reader_.get());
    // Shards that were joined with `cat` have a mark of the end in the middle.
    archive_read_set_format_option(reader_.get(), "tar", "read_concatenated_archives", "1");
    archive_read_set_read_callback(reader_.get(), read_tar_block);
    archive_read_set_skip_callback(reader_.get(), skip_in_tar);
    archive_read_set_callback_data(reader_.get(), &input_);
    check(archive_read_open1(reader_.get()));
    while (next()) take();
    for (const Draft& draft : drafts_) finish(draft);
    return std::move(index_);
  }

 private:
  struct Draft {
    std::string key, label, json_label;
    std::string extensions = "/";  // "/jpg/cls/"
    TarSample sample = {};
  };

  [[noreturn]] void fail(std::string_view message) const {
    throw FormatError(fmt::format("{}, byte {}: {}", name_,
                                  std::max<la_int64_t>(archive_read_header_position(reader_.get()), 0), message));
  }

  void check(la_ssize_t status) const {
    if (status >= 0 || status == ARCHIVE_WARN) return;
    if (!input_.error.empty()) throw IoError(input_.error);
    const char* const reason = archive_error_string(reader_.get());
    fail(fmt::format("the tar file is damaged or cut off: {}", reason == nullptr ? "unknown reason" : reason));
  }

  void check_beginning() const {
    using namespace std::string_view_literals;
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kCompressions = {
        {{"\x1F\x8B"sv, "gunzip"sv},
         {"BZh"sv, "bunzip2"sv},
         {"\xFD\x37zXZ"sv, "unxz"sv},
         {"\x28\xB5\x2F\xFD"sv, "unzstd"sv}}};
    std::array<std::byte, 6> bytes{};
    const std::size_t size = input_.file.read_some(0, bytes);
    CONCORD_CHECK(size > 0, FormatError, "{}: the tar file is empty", name_);
    const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), size);
    for (const auto& [magic, tool] : kCompressions) {
      CONCORD_CHECK(!begin.starts_with(magic), FormatError,
                    "{} is compressed; samples are read in any order, which a compressed file does not allow: "
                    "decompress it with {} (images are compressed in themselves)",
                    name_, tool);
    }
  }

  // Goes to the next header, where the content of the file before it ends.
  bool next() {
    const int status = archive_read_next_header(reader_.get(), &entry_);
    check(status);
    const auto position = static_cast<std::uint64_t>(archive_read_header_position(reader_.get()));
    if (pending_ != nullptr) {
      const std::uint64_t padded = (pending_->bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
      if (padded > position || position - padded < kTarBlock || position > input_.file.stamp().bytes) {
        fail("the size of the file before does not fit the shard");
      }
      pending_->offset = position - padded;
      pending_ = nullptr;
    }
    index_.is_ended = position < input_.file.stamp().bytes;
    return status != ARCHIVE_EOF;
  }

  // libarchive converts names of PAX headers to the locale; where it cannot, it has them in UTF-8.
  [[nodiscard]] std::string entry_path() const {
    const char* path = archive_entry_pathname(entry_);
    if (path == nullptr) path = archive_entry_pathname_utf8(entry_);
    std::string_view text = path == nullptr ? "" : path;
    while (text.starts_with("./")) text.remove_prefix(2);
    return std::string(text);
  }

  void take() {
    const std::string path = entry_path();
    if (archive_entry_hardlink(entry_) == nullptr && archive_entry_filetype(entry_) == AE_IFDIR) return;
    if (archive_entry_hardlink(entry_) != nullptr || archive_entry_filetype(entry_) != AE_IFREG ||
        archive_entry_sparse_count(entry_) > 0) {
      index_.links.add(path);
      return;
    }
    if (leads_outside(path)) {
      index_.outside.add(path);
      return;
    }
    const TarName name = split_tar_name(path);
    if (name.key.empty()) return;
    Draft& draft = draft_of(name, path);
    switch (name.kind) {
      case TarFieldKind::image:
        if (draft.sample.image.offset == 0) {
          place(draft.sample.image);
        } else {
          index_.more_images.add(path);
        }
        break;
      case TarFieldKind::mask: place(draft.sample.mask); break;
      case TarFieldKind::label: draft.label = read_label(path, kMostLabelBytes, [](auto text) { return text; }); break;
      case TarFieldKind::json:
        draft.json_label = read_label(path, kMostJsonBytes, [&](const std::string& text) {
          return label_in_json(text, fmt::format("{}: {}", name_, printable(path)));
        });
        break;
      case TarFieldKind::other: break;
    }
  }

  // A file that its sample has already begins another one of the same name, as WebDataset has it.
  Draft& draft_of(const TarName& name, std::string_view path) {
    const std::string extension = lower(path.substr(name.key.size() + 1)) + "/";
    const auto known = latest_.find(name.key);
    if (known != latest_.end() && known->second->extensions.find("/" + extension) == std::string::npos) {
      known->second->extensions += extension;
      return *known->second;
    }
    Draft& draft = drafts_.emplace_back();
    draft.key = name.key;
    draft.extensions += extension;
    latest_.insert_or_assign(draft.key, &draft);
    return draft;
  }

  void place(TarRange& range) {
    const la_int64_t size = archive_entry_size(entry_);
    if (size < 0) fail("a file has a negative size");
    range = {.offset = kTarBlock, .bytes = static_cast<std::uint64_t>(size)};  // next() knows the offset
    pending_ = &range;
  }

  // Empty if the file is damaged.
  template <class Read>
  std::string read_label(const std::string& path, std::uint64_t most, const Read& read) {
    const la_int64_t size = archive_entry_size(entry_);
    std::string label;
    if (size >= 0 && static_cast<std::uint64_t>(size) <= most) {
      std::string text(static_cast<std::size_t>(size), '\0');
      const la_ssize_t done = archive_read_data(reader_.get(), text.data(), text.size());
      check(done);
      if (done < size) fail("the tar file is cut off");
      try {
        label = trimmed(read(text));
      } catch (const FormatError& error) {
        index_.bad_label.add(error.what());
        return {};
      }
    }
    const bool is_text = label.find('\0') == std::string::npos && label.size() <= kMostLabelBytes;
    // A JSON text may be about other things.
    const bool is_missing = label.empty() && most == kMostLabelBytes;
    if (is_text && !is_missing && static_cast<std::uint64_t>(size) <= most) return label;
    index_.bad_label.add(path);
    return {};
  }

  void finish(const Draft& draft) {
    if (draft.sample.image.offset == 0) {
      index_.no_image.add(draft.key);
      return;
    }
    const std::string& label = draft.label.empty() ? draft.json_label : draft.label;
    if (label.empty() && draft.sample.mask.offset == 0) {
      index_.no_label.add(draft.key);
      return;
    }
    index_.samples.push_back(draft.sample);
    index_.keys.add(draft.key);
    index_.labels.add(label);
  }

  TarInput input_;
  const std::string& name_;
  std::unique_ptr<archive, int (*)(archive*)> reader_;
  archive_entry* entry_ = nullptr;
  std::deque<Draft> drafts_;
  std::map<std::string, Draft*, std::less<>> latest_;  // of a key
  TarRange* pending_ = nullptr;                        // its content ends where the next header begins
  TarIndex index_;
};

}  // namespace

TarIndex scan_tar(const StoredFile& shard, const std::string& name) { return TarScan(shard, name).scan(); }

}  // namespace concord::data
