// Labels as text.
#include "concord/cli/data/pack_labels.hpp"

#include "concord/core/check.hpp"

namespace concord::cli {

PackLabels::PackLabels(const data::Records& records)
    : records_(records), has_class_(records.labels.at(0).values.dtype() == DType::i32) {
  for (const Column& column : records.labels) {
    CONCORD_CHECK(column.values.elements() == records.size(), ArgumentError,
                  "{} has labels of shape {}; samples with one number in a column can be packed", records.name,
                  column.values.shape().str());
  }
}

std::int32_t PackLabels::class_of(std::int64_t row) const {
  return has_class_ ? records_.labels[0].values.values<std::int32_t>()[static_cast<std::size_t>(row)] : -1;
}

std::string PackLabels::text(std::size_t column, std::int64_t row) const {
  const Tensor& values = records_.labels[column].values;
  const auto place = static_cast<std::size_t>(row);
  if (values.dtype() == DType::i32) return fmt::format("{}", values.values<std::int32_t>()[place]);
  std::string number = fmt::format("{}", values.values<float>()[place]);
  if (number.find_first_of(".en") == std::string::npos) number += ".0";
  return number;
}

std::string PackLabels::json(std::int64_t row) const {
  std::string members;
  for (std::size_t i = 0; i < records_.labels.size(); ++i) {
    const std::string name = i == 0 ? "label" : fmt::format("label{}", i + 1);
    members += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", name, text(i, row));
  }
  return "{" + members + "}";
}

}  // namespace concord::cli
