// LMDB databases of Caffe. The place of each image and its label are found once, by a walk over the pages; then an
// image is one read. Nothing is locked: a database that is written to meanwhile is noticed and refused.
#include "concord/data/records/lmdb.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/class_file.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/records/left_out.hpp"
#include "concord/data/records/lmdb_index.hpp"
#include "concord/data/records/open.hpp"

namespace concord::data {
namespace {

class LmdbRecords final : public Records {
 public:
  LmdbRecords(const std::filesystem::path& path, const RecordOptions& options)
      : path_(printable(path.string())), file_(path), index_(lmdb_index_of(path, file_)) {
    name = fmt::format("LMDB database {}", path_);
    warn_of(name, index_.damaged, "values are left out");
    warn_of(name, index_.unlabelled, "values have no label and are class 0, as in Caffe");
    check_samples(name, index_.rows.size());
    const std::vector<std::string> stored_names = read_class_file(path.parent_path());
    if (stored_names.empty()) class_names = options.class_names;
    std::vector<std::int32_t> classes(index_.rows.size());
    std::int32_t largest = 0;
    for (std::size_t row = 0; row < classes.size(); ++row) {
      classes[row] = checked_label(row);
      largest = std::max(largest, classes[row]);
    }
    labels.push_back(class_column(classes, class_names.empty() ? largest + 1 : static_cast<int>(class_names.size())));
    if (!stored_names.empty()) class_names = name_classes(labels[0], stored_names, options.class_names, name);
    warn_of_classes(name, labels[0], class_names);
  }

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(index_.rows.size()); }
  [[nodiscard]] std::string name_of(std::int64_t row) const override {
    return fmt::format("{}: {}", path_, printable(index_.keys[static_cast<std::size_t>(row)]));
  }

  [[nodiscard]] Record read(std::int64_t row, std::vector<std::byte>& scratch) const override {
    const LmdbRow& from = index_.rows[static_cast<std::size_t>(row)];
    CONCORD_CHECK(from.bytes <= kMostFileBytes, FormatError, "{} has {} bytes; an image has at most {}", name_of(row),
                  from.bytes, kMostFileBytes);
    Record record;
    if (!from.is_encoded) {
      CONCORD_CHECK(from.channels > 0 && from.height > 0 && from.width > 0 && has_size(from), FormatError,
                    "{}: pixels of {} channels, {} rows and {} columns have {} bytes; a file of an image is marked as "
                    "`encoded`",
                    name_of(row), from.channels, from.height, from.width, from.bytes);
      record.raw = RawImage{from.channels, from.height, from.width, from.channels == 3};
    }
    const std::span<std::byte> bytes = room_in(scratch, static_cast<std::size_t>(from.bytes));
    if (file_.read_some(from.offset, bytes) != bytes.size() || !file_.is_unchanged()) fail_as_changed(row);
    record.bytes = bytes;
    return record;
  }

  [[nodiscard]] bool read_planes(std::int64_t row, const RawImage& sizes, std::span<std::byte> planes) const override {
    const LmdbRow& from = index_.rows[static_cast<std::size_t>(row)];
    const bool is_so = !from.is_encoded && from.channels == sizes.channels && from.height == sizes.height &&
                       from.width == sizes.width && from.bytes == planes.size();
    if (!is_so || (sizes.channels != 1 && sizes.channels != 3)) return false;
    const auto channels = static_cast<std::size_t>(sizes.channels);
    const std::size_t plane = planes.size() / channels;
    std::array<std::span<std::byte>, 3> parts;  // blue first
    for (std::size_t c = 0; c < channels; ++c) parts[channels - 1 - c] = planes.subspan(c * plane, plane);
    const bool is_whole = file_.read_parts(from.offset, std::span(parts).first(channels)) == planes.size();
    if (!is_whole || !file_.is_unchanged()) fail_as_changed(row);
    return true;
  }

 private:
  [[noreturn]] void fail_as_changed(std::int64_t row) const {
    throw FormatError(
        fmt::format("{}: the database was changed after it was opened; open the data again", name_of(row)));
  }
  [[nodiscard]] std::int32_t checked_label(std::size_t row) const {
    const std::int32_t label = index_.rows[row].label;
    CONCORD_CHECK(label >= 0 && label < std::numeric_limits<std::int32_t>::max(), FormatError,
                  "{}: {} has the label {}; a class is not negative and below 2^31 - 1", path_,
                  printable(index_.keys[row]), label);
    CONCORD_CHECK(class_names.empty() || static_cast<std::size_t>(label) < class_names.size(), ArgumentError,
                  "{}: {} has the label {}, which is not one of the {} classes of the model", path_,
                  printable(index_.keys[row]), label, class_names.size());
    return label;
  }

  // Without a product that might overflow.
  static bool has_size(const LmdbRow& row) {
    const auto channels = static_cast<std::uint64_t>(row.channels), height = static_cast<std::uint64_t>(row.height),
               width = static_cast<std::uint64_t>(row.width);
    return row.bytes % channels == 0 && row.bytes / channels == height * width;
  }

  std::string path_;
  StoredFile file_;
  LmdbIndex index_;
};

std::filesystem::path database_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  CONCORD_CHECK(std::filesystem::exists(path / "data.mdb", error) || !std::filesystem::exists(path / "CURRENT", error),
                NotSupported, "{} is a LevelDB database; LMDB is supported: convert it, for example with Caffe",
                printable(path.string()));
  return path / "data.mdb";
}

void warn_of_network(const std::string& name, const std::filesystem::path& path) {
  struct statfs system {};
  if (statfs(path.c_str(), &system) != 0) return;
  const std::string_view network = network_file_system(static_cast<std::uint32_t>(system.f_type));
  if (network.empty()) return;
  log(LogLevel::warning, fmt::format("{} lies on a network file system ({}): nobody may write to it while it is read, "
                                     "which is noticed late there",
                                     name, network));
}

}  // namespace

std::string_view network_file_system(std::uint32_t type) {
  switch (type) {
    case 0x6969: return "NFS";
    case 0x517B:
    case 0xFE534D42:
    case 0xFF534D42: return "SMB";
    case 0x0BD00BD0: return "Lustre";
    case 0x00C36400: return "Ceph";
    case 0x47504653: return "GPFS";
    default: return {};
  }
}

RecordsPtr open_lmdb(const std::filesystem::path& directory, const RecordOptions& options) {
  const std::filesystem::path path = database_file(absolute_path(directory));
  auto records = std::make_shared<LmdbRecords>(path, options);
  warn_of_network(records->name, path);
  if (options.numbered_classes > 0) {
    to_numbered_classes(*records, read_class_file(path.parent_path()), options.numbered_classes);
  }
  return records;
}

}  // namespace concord::data
