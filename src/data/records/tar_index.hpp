// TarIndex: where the samples of one shard lie. It is made by reading the headers of the whole shard, and is kept in a
// file beside it. Internal to the module; used by tar.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/records/left_out.hpp"
#include "concord/data/records/name_table.hpp"
#include "concord/data/records/stored_file.hpp"

namespace concord::data {

/// Bytes of a shard. The offset is 0 where there is none: a header lies before all.
struct TarRange {
  std::uint64_t offset = 0, bytes = 0;
  friend bool operator==(const TarRange&, const TarRange&) = default;
};

struct TarSample {
  TarRange image, mask;
  friend bool operator==(const TarSample&, const TarSample&) = default;
};

struct TarIndex {
  std::vector<TarSample> samples;  // with an image, and a label or a mask, in the order of their first files
  NameTable keys, labels;          // one for each; the label may be empty where there is a mask

  // What is left out.
  LeftOut links;         // links, devices and sparse files
  LeftOut outside;       // names from the root or with ".."
  LeftOut no_image;      // samples
  LeftOut no_label;      // samples, nor a mask
  LeftOut bad_label;     // files of labels that cannot be read; their samples count as no_label
  LeftOut more_images;   // further images of a sample
  bool is_ended = true;  // by the mark that ends archives
};

/// Reads the headers of a shard and the files of labels. Files whose names have the same beginning, up to the first
/// point after the last '/', are a sample; the rest of the name says what they are: an image (jpg, jpeg, png, ppm, pgm,
/// pnm, bmp, img, planes.npy), a label (cls, or json with "label" or "class") or a mask (seg.png, mask.png). Throws
/// FormatError with `name` if the shard is damaged or cut off, or compressed.
[[nodiscard]] TarIndex scan_tar(const StoredFile& shard, const std::string& name);

/// The index as bytes, and back; FormatError if the bytes are damaged or belong to another shard.
[[nodiscard]] std::string serialise_tar_index(const TarIndex& index, const FileStamp& shard);
[[nodiscard]] TarIndex parse_tar_index(std::span<const std::byte> bytes, const FileStamp& shard,
                                       const std::string& name);

/// The index of a shard from "<path>.idx", or made and, if the folder can be written to, kept there. An index that is
/// damaged or of another shard is replaced; a file that is no index stays.
[[nodiscard]] TarIndex tar_index_of(const std::filesystem::path& path, const StoredFile& shard);

}  // namespace concord::data
