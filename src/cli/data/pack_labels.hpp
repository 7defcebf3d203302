// Labels as `concord data pack` writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/data/records/records.hpp"

namespace concord::cli {

class PackLabels {
 public:
  /// Throws ArgumentError for a column with several numbers a sample.
  explicit PackLabels(const data::Records& records);

  /// Whether a sample has one class and nothing else.
  [[nodiscard]] bool are_classes() const { return has_class_ && records_.labels.size() == 1; }
  /// The class in the first column, or −1 if that has targets.
  [[nodiscard]] std::int32_t class_of(std::int64_t row) const;
  /// A target always has a decimal point.
  [[nodiscard]] std::string text(std::size_t column, std::int64_t row) const;
  /// {"label": 0.5, "label2": 3}
  [[nodiscard]] std::string json(std::int64_t row) const;
  [[nodiscard]] std::size_t columns() const { return records_.labels.size(); }
  [[nodiscard]] int classes() const { return has_class_ ? records_.labels[0].classes : 0; }
  [[nodiscard]] const std::vector<std::string>& class_names() const { return records_.class_names; }

 private:
  const data::Records& records_;
  bool has_class_;
};

}  // namespace concord::cli
