// One sample as `concord data pack` writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "concord/cli/data/image_facts.hpp"
#include "concord/data/records/records.hpp"

namespace concord::cli {

enum class PackFormat : std::uint8_t {
  keep,  // as they are, also pixels in shards and databases; of files that must change, JPEG stays JPEG and the rest
         // PNG
  jpeg,
  png,
  raw  // pixels
};

struct PackHow {
  PackFormat format = PackFormat::keep;
  int quality = 90;         // of JPEG
  std::int64_t side = 0;    // the shorter side of a larger image becomes as long; 0: as it is
  bool is_verified = true;  // files that stay as they are, are decoded, so that no damage is copied
  /// What raw pixels become: a file of PPM or PGM, an array, or planes in a Datum. With `keep` those in files stay
  /// raw in an array and a Datum, and those of a set in memory in a Datum alone; others become PNG.
  enum class Raw : std::uint8_t { pnm, array, datum } raw = Raw::pnm;
};

struct PackedSample {
  std::string bytes, extension;                      // a file, or planes
  std::optional<data::RawImage> raw = std::nullopt;  // of planes
  std::string mask;                                  // a file of PNG, where the records have masks
  bool is_copy = false;                              // the bytes are those that were stored
  std::string error;                                 // why the sample cannot be read; then the rest is empty
};

/// Reads sample `row` and makes of it what `how` says. Without `is_verified` a file that need not change is not
/// decoded: damage behind its beginning is copied too. Errors of reading come back in `error`, with the name of the
/// sample.
[[nodiscard]] PackedSample pack_sample(const data::Records& records, std::int64_t row, const PackHow& how,
                                       ImageMemory& memory);

}  // namespace concord::cli
