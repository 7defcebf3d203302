// A cache of decoded images over other records. Internal to the module.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "concord/data/records/records.hpp"

namespace concord::data {

struct CacheOptions {
  std::uint64_t bytes = 0;               // of pixels, at most
  std::filesystem::path directory = {};  // on disk, in a file that goes with the process; empty: in memory
  std::int64_t channels = 3;             // of the decoded images: 1 or 3
  /// Bytes that are used up, where several caches share `bytes`; null: this one has all.
  std::shared_ptr<std::atomic<std::uint64_t>> used = nullptr;
};

/// Records that decode an image once and keep its pixels until the budget is used up; further images are decoded each
/// time. Labels, names and masks are those of `records`. Throws IoError if the directory cannot be written.
[[nodiscard]] RecordsPtr cached(RecordsPtr records, const CacheOptions& options);

}  // namespace concord::data
