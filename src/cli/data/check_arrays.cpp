// Arrays and texts: every sample is read; numbers are added up in the order of the samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/data/check_samples.hpp"
#include "concord/cli/data/rows.hpp"

namespace concord::cli {
namespace {

/// Of the values of one column in one sample.
struct RowNumbers {
  double sum = 0, square = 0;
  double least = std::numeric_limits<double>::infinity(), largest = -std::numeric_limits<double>::infinity();
  std::int64_t values = 0, missing = 0;  // NaN and infinite ones are missing

  void add(double value) {
    if (!std::isfinite(value)) {
      ++missing;
      return;
    }
    ++values;
    sum += value;
    square += value * value;
    least = std::min(least, value);
    largest = std::max(largest, value);
  }
  void add(const RowNumbers& row) {
    sum += row.sum;
    square += row.square;
    least = std::min(least, row.least);
    largest = std::max(largest, row.largest);
    values += row.values;
    missing += row.missing;
  }
};

RowNumbers numbers_in(std::span<const std::byte> bytes, DType dtype) {
  RowNumbers numbers;
  const auto add_all = [&](const auto* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) numbers.add(static_cast<double>(values[i]));
  };
  switch (dtype) {
    case DType::u8: add_all(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()); break;
    case DType::i32: add_all(reinterpret_cast<const std::int32_t*>(bytes.data()), bytes.size() / 4); break;
    default: add_all(reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4); break;
  }
  return numbers;
}

CheckedColumn column_of_numbers(const RowNumbers& numbers, const ColumnSpec& spec, const StoredPart& part,
                                std::string role) {
  CheckedColumn column{part.name, spec.name, std::move(role), {}, numbers.values, numbers.missing, {}, {}, {}, {}};
  column.type = fmt::format("{} {}", name_of(spec.spec.dtype), spec.spec.shape.str());
  if (numbers.values == 0) return column;
  const auto count = static_cast<double>(numbers.values);
  column.least = numbers.least;
  column.largest = numbers.largest;
  column.mean = numbers.sum / count;
  column.deviation = std::sqrt(std::max(0.0, numbers.square / count - *column.mean * *column.mean));
  return column;
}

/// A value for each label column of a sample, such as "3".
std::string label_of(std::span<const std::byte> bytes, const ColumnSpec& spec, const std::vector<std::string>& names) {
  if (spec.spec.shape.elements() != 1) return {};
  const double value = numbers_in(bytes, spec.spec.dtype).sum;
  if (spec.spec.dtype != DType::i32) return fmt::format("{}", value);
  const auto index = static_cast<std::size_t>(value);
  return value >= 0 && index < names.size() ? names[index] : fmt::format("{}", value);
}

struct ReadRow {
  std::vector<RowNumbers> numbers;  // of each column
  Fingerprint content;
  std::int32_t label = -1;
  std::string title, error;
};

/// A sample of a part, with memory for it.
ReadRow read_sample(const Samples& samples, std::int64_t row, std::span<const ColumnSpec> features,
                    std::span<const ColumnSpec> labels) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::span<std::byte>> columns;
  for (const ColumnSpec& column : features) memory.emplace_back(column.spec.bytes());
  for (const ColumnSpec& column : labels) memory.emplace_back(column.spec.bytes());
  for (std::vector<std::byte>& column : memory) columns.emplace_back(column);
  ReadRow result;
  try {
    samples.read(row, columns, {});
  } catch (const FormatError& error) {
    result.error = without_name(error.what(), samples.name_of(row));
  } catch (const IoError& error) {
    result.error = without_name(error.what(), samples.name_of(row));
  }
  if (!result.error.empty()) return result;
  for (std::size_t c = 0; c < features.size(); ++c) {
    result.numbers.push_back(numbers_in(columns[c], features[c].spec.dtype));
    const Fingerprint here = fingerprint_of(columns[c], result.content.first);
    result.content = {here.first, here.second ^ result.content.second};
  }
  for (std::size_t c = 0; c < labels.size(); ++c) {
    result.numbers.push_back(numbers_in(columns[features.size() + c], labels[c].spec.dtype));
  }
  if (!labels.empty()) {
    result.title = label_of(columns[features.size()], labels[0], samples.class_names);
    if (labels[0].spec.dtype == DType::i32 && labels[0].spec.shape.elements() == 1) {
      result.label = static_cast<std::int32_t>(result.numbers[features.size()].sum);
    }
  }
  return result;
}

}  // namespace

void check_arrays(const std::vector<StoredPart>& parts, const CheckOptions& options, CheckReport& report) {
  std::vector<SeenSample> seen;
  std::vector<std::vector<ReadRow>> rows(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const SharedSamples samples = parts[p].samples;
    const std::vector<ColumnSpec> features = samples->feature_specs(), labels = samples->label_specs();
    const bool has_classes = !labels.empty() && labels[0].classes > 0 && labels[0].spec.shape.elements() == 1;
    const auto classes = static_cast<std::size_t>(has_classes ? labels[0].classes : 0);
    while (report.class_names.size() < classes) {
      const std::size_t i = report.class_names.size();
      report.class_names.push_back(i < samples->class_names.size() ? samples->class_names[i] : fmt::format("{}", i));
    }
    rows[p].resize(static_cast<std::size_t>(samples->size()));
    {
      RowProgress progress("checked", samples->size(), options.is_quiet);
      for_rows(samples->size(), options.threads, [&](std::int64_t row, std::size_t /*thread*/) {
        rows[p][static_cast<std::size_t>(row)] = read_sample(*samples, row, features, labels);
        progress.add();
      });
    }
    CheckedPart part{parts[p].name, samples->name, samples->size(), 0, 0, std::vector<std::int64_t>(classes)};
    std::vector<RowNumbers> sums(features.size() + labels.size());
    for (std::size_t row = 0; row < rows[p].size(); ++row) {
      const ReadRow& one = rows[p][row];
      if (!one.error.empty()) {
        ++part.bad;
        report.bad.push_back({part.name, samples->name_of(static_cast<std::int64_t>(row)), one.error});
        continue;
      }
      std::int64_t missing = 0;
      for (std::size_t c = 0; c < sums.size(); ++c) {
        sums[c].add(one.numbers[c]);
        missing += one.numbers[c].missing;
      }
      if (missing > 0) {
        ++part.bad;
        report.bad.push_back(
            {part.name, samples->name_of(static_cast<std::int64_t>(row)),
             fmt::format("{} NaN or infinite", missing == 1 ? "1 value is" : fmt::format("{} values are", missing))});
      }
      if (one.label >= 0 && static_cast<std::size_t>(one.label) < classes)
        ++part.class_counts[static_cast<std::size_t>(one.label)];
      seen.push_back({one.content, one.content, p, static_cast<std::int64_t>(row)});
    }
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const bool is_feature = c < features.size();
      const ColumnSpec& spec = is_feature ? features[c] : labels[c - features.size()];
      report.columns.push_back(column_of_numbers(sums[c], spec, parts[p], is_feature ? "feature" : "label"));
    }
    report.parts.push_back(std::move(part));
  }
  report.duplicates = duplicates_among(std::move(seen), [&](const SeenSample& sample) {
    return DuplicateGroup::Member{sample.part, sample.row, parts[sample.part].samples->name_of(sample.row),
                                  rows[sample.part][static_cast<std::size_t>(sample.row)].title};
  });
}

}  // namespace concord::cli
