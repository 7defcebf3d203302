// Samples that are data sets in memory, or selections of them.
#include "concord/data/in_memory.hpp"

namespace concord::data {

const Dataset* dataset_of(const Samples& samples) {
  if (const auto* selection = dynamic_cast<const Selection*>(&samples)) return dataset_of(*selection->all());
  return dynamic_cast<const Dataset*>(&samples);
}

void to_dataset_rows(const Samples& samples, std::span<std::int32_t> rows) {
  const auto* selection = dynamic_cast<const Selection*>(&samples);
  if (selection == nullptr) return;
  for (std::int32_t& row : rows) row = selection->rows()[static_cast<std::size_t>(row)];
}

}  // namespace concord::data
