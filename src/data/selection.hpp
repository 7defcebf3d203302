// Selection: some samples of a set, in an order, without a copy of them. Splits and folds are selections, so that a set
// that several trainings use is on a device once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/data/samples.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

class Selection final : public Samples {
 public:
  /// Throws ArgumentError for a row outside `all`, for no rows, without `all`, and for samples of a stream.
  Selection(SharedSamples all, std::vector<std::int32_t> rows);

  [[nodiscard]] const SharedSamples& all() const { return all_; }
  [[nodiscard]] const std::vector<std::int32_t>& rows() const { return rows_; }

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override { return all_->feature_specs(); }
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override { return all_->label_specs(); }
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns, const SampleRandom& random) const override;
  [[nodiscard]] std::optional<std::int32_t> class_of(std::int64_t row) const override;
  [[nodiscard]] std::string name_of(std::int64_t row) const override;

 private:
  SharedSamples all_;  // no selection itself
  std::vector<std::int32_t> rows_;
};

/// The rows {rest, part} of `split` for a set of `size` samples; both ascend. Throws ArgumentError, with `name`, unless
/// 0 < count < size.
[[nodiscard]] std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> split_rows(std::int64_t size,
                                                                                         std::int64_t count,
                                                                                         std::string_view name,
                                                                                         std::uint64_t seed = 0);

/// Splits off `count` random samples, for validation. Returns {rest, part}. 0 < count < size. The same samples as those
/// of `split` for a Dataset.
[[nodiscard]] std::pair<SharedSamples, SharedSamples> split(const SharedSamples& samples, std::int64_t count,
                                                            std::uint64_t seed = 0);

/// All samples but those of `rows`, which may be in any order and be there twice. Throws as Selection does.
[[nodiscard]] SharedSamples without_rows(const SharedSamples& samples, std::span<const std::int32_t> rows);

/// Reads samples into memory, in the order of `rows`, as epoch `epoch` of a training with this seed sees them. Throws
/// what Samples::read throws.
[[nodiscard]] Dataset read_rows(const Samples& samples, std::span<const std::int32_t> rows, std::uint64_t seed = 0,
                                std::uint32_t epoch = 0);

}  // namespace data
}  // namespace concord
