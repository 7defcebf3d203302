// Threads that claim samples.
#include "concord/cli/predict/read_rows.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "concord/cli/command.hpp"
#include "concord/core/threads.hpp"

namespace concord::cli {
namespace {

/// [rows, …] of the first column of features.
Tensor memory_of(const ColumnSpec& column, std::size_t rows) {
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(rows)};
  dims.insert(dims.end(), column.spec.shape.dims().begin(), column.spec.shape.dims().end());
  return Tensor(column.spec.dtype, Shape(std::move(dims)));
}

}  // namespace

RowsRead read_in_parallel(const Samples& samples, std::span<const std::int32_t> rows) {
  const ColumnSpec column = samples.feature_specs()[0];
  Tensor values = memory_of(column, rows.size());
  RowsRead read;
  read.errors.resize(rows.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(num_threads()));
  const auto work = [&](std::exception_ptr& failure) {
    try {
      for (std::size_t i = next++; i < rows.size(); i = next++) {
        const std::span<std::byte> to = values.bytes().subspan(i * column.spec.bytes(), column.spec.bytes());
        try {
          samples.read(rows[i], std::span(&to, 1), {});
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
    Tensor kept = memory_of(column, good.size());
    for (std::size_t i = 0; i < good.size(); ++i) {
      const std::size_t bytes = column.spec.bytes();
      std::ranges::copy(values.bytes().subspan(good[i] * bytes, bytes), kept.bytes().subspan(i * bytes).begin());
    }
    values = std::move(kept);
  }
  read.dataset.features = std::move(values);
  read.dataset.scale = column.scale;
  read.dataset.shift = column.shift;
  read.dataset.mean = column.mean;
  read.dataset.deviation = column.deviation;
  return read;
}

}  // namespace concord::cli
