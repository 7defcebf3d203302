// Selections, and samples read into memory.
#include "concord/data/selection.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/data/columns.hpp"

namespace concord::data {
namespace {

std::int32_t at(const std::vector<std::int32_t>& rows, std::int64_t row) { return rows[static_cast<std::size_t>(row)]; }

Tensor memory_for(const ColumnSpec& column, std::size_t samples) {
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(samples)};
  dims.insert(dims.end(), column.spec.shape.dims().begin(), column.spec.shape.dims().end());
  return Tensor(column.spec.dtype, Shape(std::move(dims)));
}

}  // namespace

Selection::Selection(SharedSamples all, std::vector<std::int32_t> rows) : all_(std::move(all)), rows_(std::move(rows)) {
  CONCORD_CHECK(all_, ArgumentError, "a selection of no samples");
  name = all_->name;
  class_names = all_->class_names;
  CONCORD_CHECK(!all_->is_sequential(), ArgumentError,
                "selection of {}: its samples come from a stream, in their order; read a part from a stream of its own",
                name);
  CONCORD_CHECK(!rows_.empty(), ArgumentError, "selection of {}: it needs at least one row", name);
  const std::int64_t size = all_->size();
  for (const std::int32_t row : rows_) {
    CONCORD_CHECK(row >= 0 && row < size, ArgumentError, "selection of {}: row {} is outside its {} samples", name, row,
                  size);
  }
  if (const auto* inner = dynamic_cast<const Selection*>(&*all_)) {
    for (std::int32_t& row : rows_) row = at(inner->rows_, row);
    all_ = SharedSamples(inner->all_);
  }
}

void Selection::read(std::int64_t row, std::span<const std::span<std::byte>> columns,
                     const SampleRandom& random) const {
  all_->read(at(rows_, row), columns, random);
}

std::optional<std::int32_t> Selection::class_of(std::int64_t row) const { return all_->class_of(at(rows_, row)); }

std::string Selection::name_of(std::int64_t row) const { return all_->name_of(at(rows_, row)); }

std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> split_rows(std::int64_t size, std::int64_t count,
                                                                           std::string_view name, std::uint64_t seed) {
  CONCORD_CHECK(count > 0 && count < size, ArgumentError,
                "split of {}: a part needs at least one sample and must leave one, got {} of {}", name, count, size);
  std::vector<std::int32_t> order = permutation(size, seed);
  const auto cut = order.begin() + count;
  std::sort(order.begin(), cut);
  std::sort(cut, order.end());
  return {{cut, order.end()}, {order.begin(), cut}};
}

std::pair<SharedSamples, SharedSamples> split(const SharedSamples& samples, std::int64_t count, std::uint64_t seed) {
  auto [rest, part] = split_rows(samples->size(), count, samples->name, seed);
  return {Selection(samples, std::move(rest)), Selection(samples, std::move(part))};
}

SharedSamples without_rows(const SharedSamples& samples, std::span<const std::int32_t> rows) {
  CONCORD_CHECK(samples, ArgumentError, "a selection of no samples");
  std::vector<bool> is_out(static_cast<std::size_t>(samples->size()));
  for (const std::int32_t row : rows) is_out.at(static_cast<std::size_t>(row)) = true;
  std::vector<std::int32_t> rest;
  for (std::int32_t row = 0; row < samples->size(); ++row) {
    if (!is_out[static_cast<std::size_t>(row)]) rest.push_back(row);
  }
  return Selection(samples, std::move(rest));
}

Dataset read_rows(const Samples& samples, std::span<const std::int32_t> rows, std::uint64_t seed, std::uint32_t epoch) {
  CONCORD_CHECK(!rows.empty(), ArgumentError, "{}: no rows to read", samples.name);
  std::vector<Column> features, labels;
  for (const auto& [specs, columns] :
       {std::pair(samples.feature_specs(), &features), std::pair(samples.label_specs(), &labels)}) {
    for (const ColumnSpec& column : specs) {
      columns->push_back({column.name, memory_for(column, rows.size()), column.classes, column.scale, column.shift,
                          column.mean, column.deviation});
    }
  }
  std::vector<std::span<std::byte>> to;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    to.clear();
    for (auto* columns : {&features, &labels}) {
      for (Column& column : *columns) {
        const std::size_t bytes = column.values.spec().bytes() / rows.size();
        to.push_back(column.values.bytes().subspan(i * bytes, bytes));
      }
    }
    samples.read(rows[i], to, {seed, epoch, rows[i]});
  }
  Dataset dataset = joined(std::move(features), std::move(labels));
  dataset.name = samples.name;
  dataset.class_names = samples.class_names;
  return dataset;
}

}  // namespace concord::data
