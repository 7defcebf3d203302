// Shards: tar files whose samples are read by offset, in any order and by any thread.
#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/array_file.hpp"
#include "concord/data/records/class_file.hpp"
#include "concord/data/records/label_column.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/tar_index.hpp"

namespace concord::data {
namespace {

constexpr std::size_t kMostOpenShards = 256;

/// The shards by number. The files that were used last are open; a file stays open as long as someone reads it.
class OpenShards {
 public:
  struct Shard {
    std::filesystem::path path;  // from the root
    FileStamp stamp;
  };
  explicit OpenShards(std::vector<Shard> shards) : shards_(std::move(shards)), files_(shards_.size()) {}

  [[nodiscard]] const std::filesystem::path& path(std::size_t shard) const { return shards_[shard].path; }

  /// Throws IoError, and FormatError if the shard is not what it was.
  [[nodiscard]] std::shared_ptr<const StoredFile> file(std::size_t shard) const {
    const std::lock_guard lock(mutex_);
    File& file = files_[shard];
    if (file.open == nullptr) {
      auto opened = std::make_shared<const StoredFile>(shards_[shard].path);
      CONCORD_CHECK(opened->stamp() == shards_[shard].stamp, FormatError,
                    "{} was changed after its samples were indexed; open the data again",
                    printable(shards_[shard].path.string()));
      if (used_.size() >= kMostOpenShards) {
        files_[used_.back()].open.reset();
        used_.pop_back();
      }
      file.open = std::move(opened);
      used_.push_front(shard);
      file.place = used_.begin();
    }
    used_.splice(used_.begin(), used_, file.place);
    return file.open;
  }

 private:
  struct File {
    std::shared_ptr<const StoredFile> open;
    std::list<std::size_t>::iterator place;  // in used_, while it is open
  };
  std::vector<Shard> shards_;
  mutable std::mutex mutex_;
  mutable std::vector<File> files_;
  mutable std::list<std::size_t> used_;  // the last one first
};

struct TarRow {
  std::uint32_t shard = 0;
  TarSample sample;
};

class TarRecords final : public Records {
 public:
  TarRecords(std::vector<OpenShards::Shard> shards, std::vector<TarRow> rows, NameTable keys, bool has_mask)
      : shards_(std::move(shards)), rows_(std::move(rows)), keys_(std::move(keys)), has_mask_(has_mask) {}

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::string name_of(std::int64_t row) const override {
    const auto index = static_cast<std::size_t>(row);
    return fmt::format("{}: {}", shards_.path(rows_[index].shard).string(), keys_[index]);
  }
  [[nodiscard]] Record read(std::int64_t row, std::vector<std::byte>& scratch) const override {
    Record record = read_range(row, rows_[static_cast<std::size_t>(row)].sample.image, scratch);
    try {
      record.raw = read_array_head(record.bytes);
    } catch (const FormatError& error) {
      throw FormatError(fmt::format("{}: {}", printable(name_of(row)), error.what()));
    }
    if (record.raw) record.bytes = record.bytes.subspan(kArrayHeadBytes);
    return record;
  }
  [[nodiscard]] bool read_planes(std::int64_t row, const RawImage& sizes, std::span<std::byte> planes) const override {
    const TarRow& from = rows_[static_cast<std::size_t>(row)];
    if (from.sample.image.bytes != planes.size() + kArrayHeadBytes) return false;
    const auto file = shards_.file(from.shard);
    std::array<std::byte, kArrayHeadBytes> head;
    const std::array<std::span<std::byte>, 2> parts{head, planes};
    if (file->read_parts(from.sample.image.offset, parts) != from.sample.image.bytes) fail_as_changed(row);
    const std::string wanted = array_head(sizes);
    if (std::memcmp(head.data(), wanted.data(), head.size()) != 0) return false;
    if (!file->is_unchanged()) fail_as_changed(row);
    return true;
  }
  [[nodiscard]] bool has_mask() const override { return has_mask_; }
  [[nodiscard]] Record read_mask(std::int64_t row, std::vector<std::byte>& scratch) const override {
    const TarRange& mask = rows_[static_cast<std::size_t>(row)].sample.mask;
    CONCORD_CHECK(mask.offset > 0, FormatError, "{}: there is no mask (seg.png or mask.png)", printable(name_of(row)));
    return read_range(row, mask, scratch);
  }

 private:
  Record read_range(std::int64_t row, const TarRange& range, std::vector<std::byte>& scratch) const {
    CONCORD_CHECK(range.bytes <= kMostFileBytes, FormatError, "{} has {} bytes; an image has at most {}",
                  printable(name_of(row)), range.bytes, kMostFileBytes);
    const auto file = shards_.file(rows_[static_cast<std::size_t>(row)].shard);
    const std::span<std::byte> bytes = room_in(scratch, static_cast<std::size_t>(range.bytes));
    if (file->read_some(range.offset, bytes) == bytes.size() && file->is_unchanged()) return {bytes};
    fail_as_changed(row);
  }
  [[noreturn]] void fail_as_changed(std::int64_t row) const {
    throw FormatError(fmt::format("{}: the shard was changed after its samples were indexed; open the data again",
                                  printable(name_of(row))));
  }

  OpenShards shards_;
  std::vector<TarRow> rows_;
  NameTable keys_;
  bool has_mask_;
};

// What the indices of all shards give.
struct TarSet {
  std::vector<OpenShards::Shard> shards;
  std::vector<TarRow> rows;
  NameTable keys, labels;
  LeftOut links, outside, no_image, no_label, bad_label, more_images, not_ended, no_mask;
  bool uses_masks = true;
  std::size_t masks = 0, unlabelled = 0;

  void add(const std::filesystem::path& path) {
    const StoredFile file(path);
    const TarIndex index = tar_index_of(path, file);
    const auto name_of = [&](std::size_t i) { return fmt::format("{}: {}", path.string(), index.keys[i]); };
    for (std::size_t i = 0; i < index.samples.size(); ++i) {
      if (index.labels[i].empty() && !uses_masks) {
        no_label.add(name_of(i));
        continue;
      }
      rows.push_back({static_cast<std::uint32_t>(shards.size()), index.samples[i]});
      keys.add(index.keys[i]);
      labels.add(index.labels[i]);
      unlabelled += index.labels[i].empty() ? 1 : 0;
      if (index.samples[i].mask.offset > 0) {
        ++masks;
      } else {
        no_mask.add(name_of(i));
      }
    }
    add_to(links, index.links, path);
    add_to(outside, index.outside, path);
    add_to(no_image, index.no_image, path);
    add_to(no_label, index.no_label, path);
    add_to(bad_label, index.bad_label, path);
    add_to(more_images, index.more_images, path);
    if (!index.is_ended) not_ended.add(path.string());
    shards.push_back({absolute_path(path), file.stamp()});
  }

  [[nodiscard]] bool has_masks() const { return uses_masks && masks > 0; }

  static void add_to(LeftOut& all, const LeftOut& of_shard, const std::filesystem::path& path) {
    if (of_shard.count == 0) return;
    all.add({.count = of_shard.count, .first = fmt::format("{}: {}", path.string(), of_shard.first)});
  }

  void warn(const std::string& name) const {
    warn_of(name, links, "links, devices and sparse files are left out");
    warn_of(name, outside, "files whose names begin with / or have .. are left out");
    warn_of(name, bad_label, "labels cannot be read");
    warn_of(name, no_image, "samples have no image (jpg, jpeg, png, ppm, pgm, pnm, bmp or img) and are left out");
    warn_of(name, no_label, "samples have no label (cls, or json with \"label\" or \"class\") and are left out");
    warn_of(name, more_images, "further images of samples are left out");
    warn_of(name, not_ended, "shards end without a mark and may be cut off");
    if (has_masks()) warn_of(name, no_mask, "samples have no mask");
  }
};

// The names of classes beside the shards, which must be the same in all their folders.
std::vector<std::string> class_names_beside(const std::vector<std::filesystem::path>& shards) {
  std::set<std::filesystem::path> folders;
  for (const std::filesystem::path& shard : shards) folders.insert(absolute_path(shard).parent_path());
  const std::vector<std::string> names = read_class_file(*folders.begin());
  for (const std::filesystem::path& folder : folders) {
    CONCORD_CHECK(read_class_file(folder) == names, FormatError,
                  "the shards in {} and {} have other classes, as {} beside them says", printable(folder.string()),
                  printable(folders.begin()->string()), kClassFile);
  }
  return names;
}

// Whether all labels are whole numbers: then they are indices, also where a class has a number for a name.
bool are_class_indices(const NameTable& labels) {
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (!std::ranges::all_of(labels[row], is_digit)) return false;
  }
  return true;
}

struct NamedLabels {
  Column column;
  std::vector<std::string> class_names;
};

/// The labels of the samples; one class for all where some have masks alone. `stored_names` are those beside the
/// shards.
NamedLabels labels_of(const TarSet& set, const std::vector<std::string>& stored_names,
                      const std::vector<std::string>& wanted, const std::string& name) {
  if (set.unlabelled > 0) return {class_column(std::vector<std::int32_t>(set.rows.size()), 1), {}};
  const bool has_names = !stored_names.empty() && are_class_indices(set.labels);
  std::vector<std::string> class_names = has_names ? std::vector<std::string>() : wanted;
  if (!has_names && class_names.empty()) class_names = stored_names;
  const auto place = [&](std::size_t row) {
    return fmt::format("{}: {}", printable(set.shards[set.rows[row].shard].path.string()), printable(set.keys[row]));
  };
  Column labels =
      label_column({.count = set.rows.size(), .text = [&](std::size_t row) { return set.labels[row]; }, .place = place},
                   class_names);
  if (labels.values.dtype() != DType::i32) class_names.clear();
  if (has_names) class_names = name_classes(labels, stored_names, wanted, name);
  return {std::move(labels), std::move(class_names)};
}

std::string name_of_shards(const std::vector<std::filesystem::path>& shards) {
  const std::string first = printable(shards[0].string());
  return shards.size() == 1 ? first : fmt::format("{} and {} more shards", first, shards.size() - 1);
}

}  // namespace

RecordsPtr open_tar(const std::vector<std::filesystem::path>& shards, const RecordOptions& options) {
  CONCORD_CHECK(!shards.empty(), ArgumentError, "there is no shard");
  TarSet set;
  set.uses_masks = options.masks_in_shards;
  for (const std::filesystem::path& shard : shards) set.add(shard);
  std::string name = name_of_shards(shards);
  set.warn(name);
  CONCORD_CHECK(
      !set.rows.empty(), ArgumentError,
      "{}: there is no sample; a sample is an image and a label of one name, such as cat/1.jpg and cat/1.cls, "
      "or a mask such as cat/1.seg.png",
      name);
  check_samples(name, set.rows.size());
  const bool has_mask = set.has_masks();
  const std::vector<std::string> stored_names = class_names_beside(shards);
  NamedLabels labels = labels_of(set, stored_names, has_mask ? std::vector<std::string>() : options.class_names, name);
  auto records =
      std::make_shared<TarRecords>(std::move(set.shards), std::move(set.rows), std::move(set.keys), has_mask);
  records->name = std::move(name);
  records->mask_classes = options.mask_classes;
  if (labels.column.values.dtype() == DType::i32 && !has_mask) {
    warn_of_classes(records->name, labels.column, labels.class_names);
  }
  records->labels.push_back(std::move(labels.column));
  records->class_names = std::move(labels.class_names);
  to_numbered_classes(*records, stored_names, options.numbered_classes);
  return records;
}

}  // namespace concord::data
