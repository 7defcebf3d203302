// Classes in turn.
#include "concord/data/balanced_order.hpp"

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

template <class T>
void shuffle(std::vector<T>& values, PhiloxSequence& words) {
  for (auto i = static_cast<std::uint32_t>(values.size()); i > 1; --i) std::swap(values[i - 1], values[words.below(i)]);
}

std::vector<std::vector<std::int32_t>> samples_by_class(const Samples& samples) {
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int64_t row = 0; row < samples.size(); ++row) {
    const std::optional<std::int32_t> label = samples.class_of(row);
    CONCORD_CHECK(label && *label >= 0, ArgumentError, "{}: the class of {} is not known", samples.name,
                  printable(samples.name_of(row)));
    if (static_cast<std::size_t>(*label) >= rows.size()) rows.resize(static_cast<std::size_t>(*label) + 1);
    rows[static_cast<std::size_t>(*label)].push_back(static_cast<std::int32_t>(row));
  }
  return rows;
}

}  // namespace

std::vector<std::int32_t> balanced_order(const Samples& samples, std::uint64_t seed, std::uint32_t epoch) {
  std::vector<std::vector<std::int32_t>> rows = samples_by_class(samples);
  std::erase_if(rows, [](const auto& of_class) { return of_class.empty(); });
  PhiloxSequence words(Philox(seed, philox_purpose("data.balanced"), epoch));
  const auto n = static_cast<std::size_t>(samples.size());
  std::vector<std::size_t> classes(rows.size());
  for (std::size_t c = 0; c < classes.size(); ++c) classes[c] = c;
  shuffle(classes, words);  // which of them come once more is by chance
  std::vector<std::int32_t> order;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::vector<std::int32_t>& own = rows[classes[c]];
    const std::size_t wanted = n / classes.size() + (c < n % classes.size() ? 1 : 0);
    for (std::size_t i = 0; i < wanted; ++i) {
      if (i % own.size() == 0) shuffle(own, words);
      order.push_back(own[i % own.size()]);
    }
  }
  shuffle(order, words);
  return order;
}

std::vector<std::int64_t> class_counts(const Samples& samples) {
  std::vector<std::int64_t> counts;
  for (const auto& rows : samples_by_class(samples)) counts.push_back(std::ssize(rows));
  const std::vector<ColumnSpec> labels = samples.label_specs();
  const auto classes = static_cast<std::size_t>(labels.empty() ? 0 : labels[0].classes);
  if (counts.size() < classes) counts.resize(classes, 0);
  return counts;
}

}  // namespace concord::data
