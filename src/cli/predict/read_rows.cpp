// Threads that claim samples.
#include "concord/cli/predict/read_rows.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "concord/cli/command.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/core/threads.hpp"
#include "concord/data/columns.hpp"

namespace concord::cli {
namespace {

/// Columns of so many rows, unset.
std::vector<Column> columns_for(const std::vector<ColumnSpec>& specs, std::size_t rows) {
  std::vector<Column> columns;
  for (const ColumnSpec& spec : specs) {
    std::vector<std::int64_t> dims{static_cast<std::int64_t>(rows)};
    dims.insert(dims.end(), spec.spec.shape.dims().begin(), spec.spec.shape.dims().end());
    columns.push_back({spec.name, Tensor(spec.spec.dtype, Shape(std::move(dims))), spec.classes, spec.scale, spec.shift,
                       spec.mean, spec.deviation});
  }
  return columns;
}

std::span<std::byte> row_of(Column& column, std::size_t row, std::size_t bytes) {
  return column.values.bytes().subspan(row * bytes, bytes);
}

/// Those rows alone.
std::vector<Column> kept_rows(std::vector<Column> columns, const std::vector<ColumnSpec>& specs,
                              const std::vector<std::size_t>& rows) {
  std::vector<Column> kept = columns_for(specs, rows.size());
  for (std::size_t c = 0; c < specs.size(); ++c) {
    const std::size_t bytes = specs[c].spec.bytes();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(row_of(columns[c], rows[i], bytes), row_of(kept[c], i, bytes).begin());
    }
  }
  return kept;
}

}  // namespace

RowsRead read_in_parallel(const Samples& samples, std::span<const std::int32_t> rows) {
  const std::vector<ColumnSpec> feature_specs = samples.feature_specs(), label_specs = samples.label_specs();
  std::vector<Column> features = columns_for(feature_specs, rows.size());
  std::vector<Column> labels = columns_for(label_specs, rows.size());
  RowsRead read;
  read.errors.resize(rows.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(num_threads()));
  const auto work = [&](std::exception_ptr& failure) {
    try {
      std::vector<std::span<std::byte>> to;
      for (std::size_t i = next++; i < rows.size(); i = next++) {
        to.clear();
        for (std::size_t c = 0; c < features.size(); ++c) {
          to.push_back(row_of(features[c], i, feature_specs[c].spec.bytes()));
        }
        for (std::size_t c = 0; c < labels.size(); ++c) {
          to.push_back(row_of(labels[c], i, label_specs[c].spec.bytes()));
        }
        try {
          samples.read(rows[i], to, {0, 0, rows[i]});
        } catch (const FormatError& error) {
          read.errors[i] = without_name(error.what(), samples.name_of(rows[i]));
        } catch (const IoError& error) {
          read.errors[i] = without_name(error.what(), samples.name_of(rows[i]));
        }
      }
    } catch (...) {
      failure = std::current_exception();
      next = rows.size();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 1; t < failures.size() && t < rows.size(); ++t) {
      threads.emplace_back([&work, &failure = failures[t]] { work(failure); });
    }
    work(failures[0]);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  std::vector<std::size_t> good;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (read.errors[i].empty()) good.push_back(i);
  }
  if (good.empty()) return read;
  if (good.size() < rows.size()) {
    features = kept_rows(std::move(features), feature_specs, good);
    labels = kept_rows(std::move(labels), label_specs, good);
  }
  read.dataset = data::joined(std::move(features), std::move(labels));
  read.dataset.name = samples.name;
  read.dataset.class_names = samples.class_names;
  return read;
}

void add_pictures(const RowsRead& read, const std::string& data, std::vector<Tensor>& pictures) {
  std::int64_t good = 0;
  for (const std::string& error : read.errors) {
    pictures.push_back(error.empty() ? picture_in(read.dataset.features, good++, data) : Tensor());
  }
}

}  // namespace concord::cli
