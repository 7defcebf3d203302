// The index of a shard as bytes, and where it is kept.
#include "concord/data/records/tar_index.hpp"

#include <array>
#include <utility>

#include "concord/core/utf8.hpp"
#include "concord/data/records/index_file.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kTarIndexKind = "concord tar index 2\n";

// All counters in the order of the file.
template <class Index>
auto counters_of(Index& index) {
  return std::array{&index.links,    &index.outside,   &index.no_image,
                    &index.no_label, &index.bad_label, &index.more_images};
}

}  // namespace

std::string serialise_tar_index(const TarIndex& index, const FileStamp& shard) {
  IndexWriter writer(kTarIndexKind, shard);
  writer.number(index.samples.size());
  for (std::size_t i = 0; i < index.samples.size(); ++i) {
    for (const TarRange& range : {index.samples[i].image, index.samples[i].mask}) {
      writer.number(range.offset);
      writer.number(range.bytes);
    }
    writer.text(index.keys[i]);
    writer.text(index.labels[i]);
  }
  for (const LeftOut* const files : counters_of(index)) writer.left_out(*files);
  writer.number(index.is_ended ? 1 : 0);
  return writer.finish();
}

TarIndex parse_tar_index(std::span<const std::byte> bytes, const FileStamp& shard, const std::string& name) {
  IndexReader reader(bytes, kTarIndexKind, shard, name);
  TarIndex index;
  for (std::uint64_t left = reader.number(); left > 0; --left) {
    TarSample sample;
    for (TarRange* const range : {&sample.image, &sample.mask}) {
      range->offset = reader.number();
      range->bytes = reader.number();
      reader.check(range->offset <= shard.bytes && range->bytes <= shard.bytes - range->offset,
                   "has a file outside the shard");
    }
    index.samples.push_back(sample);
    index.keys.add(reader.text());
    index.labels.add(reader.text());
  }
  for (LeftOut* const files : counters_of(index)) *files = reader.left_out();
  index.is_ended = reader.number() != 0;
  reader.expect_end();
  return index;
}

TarIndex tar_index_of(const std::filesystem::path& path, const StoredFile& shard) {
  TarIndex index;
  use_index(
      path,
      [&](std::span<const std::byte> bytes, const std::string& name) {
        index = parse_tar_index(bytes, shard.stamp(), name);
      },
      [&] {
        index = scan_tar(shard, printable(path.string()));
        return serialise_tar_index(index, shard.stamp());
      });
  return index;
}

}  // namespace concord::data
