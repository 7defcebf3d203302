// Samples on their way into a batch.
#include "concord/data/sample_reader.hpp"

#include <algorithm>
#include <cstring>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/in_memory.hpp"

namespace concord::data {
namespace {

/// Rows after a damaged one that may take its place.
constexpr std::int64_t kMostReplacements = 100;
/// Damaged samples that are named; further ones are counted.
constexpr std::size_t kMostNamed = 10;

/// The memory of sample i in each of these columns of a batch of n.
void add_columns(std::vector<std::span<std::byte>>& to, const std::vector<ColumnSpec>& columns,
                 std::span<std::byte> batch, std::size_t i, std::size_t n) {
  for (const ColumnSpec& column : columns) {
    const std::size_t bytes = column.spec.bytes();
    to.push_back(batch.subspan(i * bytes, bytes));
    batch = batch.subspan(n * bytes);
  }
}

}  // namespace

SampleReader::SampleReader(SharedSamples samples, const LoaderOptions& options)
    : samples_(std::move(samples)),
      options_(options),
      features_(samples_->feature_specs()),
      labels_(samples_->label_specs()),
      feature_bytes_(bytes_of(features_)),
      label_bytes_(bytes_of(labels_)),
      checks_labels_(dataset_of(*samples_) == nullptr) {}  // those of sets in memory are checked before a training

void SampleReader::check_rows(std::span<const std::int32_t> rows) const {
  const std::int64_t size = samples_->size();
  for (const std::int32_t row : rows) {
    CONCORD_CHECK(row >= 0 && row < size, ArgumentError, "loader: row {} is outside the {} samples of {}", row, size,
                  samples_->name);
  }
}

void SampleReader::read(std::span<const std::int32_t> rows, std::int64_t i, const LoaderSlot& slot,
                        std::uint32_t epoch) {
  thread_local Columns columns;  // memory that is reused
  columns.clear();
  const auto at = static_cast<std::size_t>(i);
  add_columns(columns, features_, slot.features->bytes(), at, rows.size());
  add_columns(columns, labels_, slot.labels->bytes(), at, rows.size());
  const std::int32_t row = rows[at];
  if (options_.bad_samples == BadSamples::fail) return read_row(row, columns, epoch);
  const std::int64_t size = samples_->size();
  const std::int64_t most = std::min(size - 1, kMostReplacements);
  for (std::int64_t ahead = 0;; ++ahead) {
    const auto candidate = static_cast<std::int32_t>((row + ahead) % size);
    try {
      return read_row(candidate, columns, epoch);
    } catch (const FormatError& error) {
      note_bad(candidate, error.what());
      if (ahead >= most) throw;
    } catch (const IoError& error) {
      note_bad(candidate, error.what());
      if (ahead >= most) throw;
    }
  }
}

void SampleReader::read_row(std::int32_t row, const Columns& columns, std::uint32_t epoch) const {
  samples_->read(row, columns, {options_.seed, epoch, row});
  if (checks_labels_) check_labels(row, std::span(columns).subspan(features_.size()));
  if (options_.augmentation) options_.augmentation(columns[0], {row, epoch, features_[0].spec});
}

void SampleReader::check_labels(std::int32_t row, std::span<const std::span<std::byte>> labels) const {
  for (std::size_t c = 0; c < labels.size(); ++c) {
    if (labels_[c].classes == 0) continue;
    const std::optional<std::int32_t> ignored = c < options_.ignored.size() ? options_.ignored[c] : std::nullopt;
    for (std::size_t at = 0; at < labels[c].size(); at += sizeof(std::int32_t)) {
      std::int32_t label = 0;
      std::memcpy(&label, labels[c].data() + at, sizeof label);
      CONCORD_CHECK((label >= 0 && label < labels_[c].classes) || label == ignored, ArgumentError,
                    "{}: label {} of {} is outside [0, {})", samples_->name, label, printable(samples_->name_of(row)),
                    labels_[c].classes);
    }
  }
}

void SampleReader::note_bad(std::int32_t row, const char* why) {
  const std::lock_guard lock(mutex_);
  if (!bad_.insert(row).second) return;
  skipped_ = std::ssize(bad_);
  if (options_.left_out) options_.left_out(row);
  if (bad_.size() <= kMostNamed) {
    log(LogLevel::warning, fmt::format("{}: {}; {}", samples_->name, why,
                                       options_.left_out ? "it is left out" : "another sample takes its place"));
  } else if (bad_.size() == kMostNamed + 1) {
    log(LogLevel::warning, fmt::format("{}: further damaged samples are counted, not named", samples_->name));
  }
}

}  // namespace concord::data
