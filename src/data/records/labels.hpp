// Labels of stored records: names of classes, columns, and what is worth a warning about them. Internal to the module.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/dataset.hpp"

namespace concord::data {

/// The indices of named classes.
class ClassTable {
 public:
  explicit ClassTable(const std::vector<std::string>& names);
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view name) const;

 private:
  std::map<std::string, std::int32_t, std::less<>> indices_;
};

/// Names of classes are saved with the weights, as UTF-8. Throws ArgumentError that says so; `what` is "the name of the
/// folder".
void check_class_name(std::string_view name, std::string_view what);

/// A column of classes [N].
[[nodiscard]] Column class_column(const std::vector<std::int32_t>& values, int classes);
/// A column of targets [N, 1].
[[nodiscard]] Column target_column(const std::vector<float>& values);

/// "a, b, c and 4 more"
[[nodiscard]] std::string some_of(const std::vector<std::string>& names);

/// Logs a warning for classes without a sample, which it names, and for one class only. `name` is that of the records.
void warn_of_classes(const std::string& name, const Column& classes, const std::vector<std::string>& class_names);

/// Throws ArgumentError unless there are 1 … 2^31 − 1 samples.
void check_samples(const std::string& name, std::size_t samples);

}  // namespace concord::data
