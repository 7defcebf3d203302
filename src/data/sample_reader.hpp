// SampleReader: puts samples into the columns of a batch, checks their labels and replaces damaged ones. Internal to
// the module; the threads of a loader share one.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "concord/data/columns.hpp"
#include "concord/data/loader_options.hpp"

namespace concord::data {

class SampleReader {
 public:
  /// `options` must outlive it.
  SampleReader(SharedSamples samples, const LoaderOptions& options);

  /// Throws ArgumentError for a row outside the set.
  void check_rows(std::span<const std::int32_t> rows) const;
  /// Samples::start, before the samples of an epoch.
  void start(std::span<const std::int32_t> rows, std::uint32_t epoch) const {
    if (!rows.empty()) samples_->start({options_.seed, epoch, rows[0]}, rows);
  }
  /// Reads sample `i` of a batch, which is row `rows[i]`, into the slot.
  void read(std::span<const std::int32_t> rows, std::int64_t i, const LoaderSlot& slot, std::uint32_t epoch);

  [[nodiscard]] std::size_t feature_bytes() const { return feature_bytes_; }  // of one sample
  [[nodiscard]] std::size_t label_bytes() const { return label_bytes_; }
  [[nodiscard]] std::int64_t skipped() const { return skipped_; }

 private:
  using Columns = std::vector<std::span<std::byte>>;
  void read_row(std::int32_t row, const Columns& columns, std::uint32_t epoch) const;
  void check_labels(std::int32_t row, std::span<const std::span<std::byte>> labels) const;
  void note_bad(std::int32_t row, const char* why);

  SharedSamples samples_;
  const LoaderOptions& options_;
  std::vector<ColumnSpec> features_, labels_;
  std::size_t feature_bytes_, label_bytes_;
  bool checks_labels_;

  std::mutex mutex_;  // guards bad_
  std::set<std::int32_t> bad_;
  std::atomic<std::int64_t> skipped_ = 0;  // the size of bad_
};

}  // namespace concord::data
