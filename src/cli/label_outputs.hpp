// LabelOutputs: a network for several columns of labels of one table. Its classes are cut into an output for each
// column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// An output and its column of labels.
struct LabelOutput {
  std::string name;                // of the column; of the first target
  std::vector<std::string> names;  // of its classes, or of the targets
  bool has_classes = true;
};

/// The outputs that the labels of a table need: one for each label with classes, and one for all targets.
[[nodiscard]] std::vector<LabelOutput> label_outputs_of(const data::CsvEncoding& table);
/// Classes of a network that has all of them.
[[nodiscard]] int classes_of(const std::vector<LabelOutput>& outputs);
/// The network with these outputs, by name. Its parameters keep their names.
[[nodiscard]] std::shared_ptr<nn::Module> with_outputs(std::shared_ptr<nn::Module> network,
                                                       std::vector<LabelOutput> outputs);
/// The sum of the cross entropies of classes and of the squared error of targets.
[[nodiscard]] Objective objective_of_outputs(const std::vector<LabelOutput>& outputs,
                                             const loss::CrossEntropy& cross_entropy);

}  // namespace concord::cli
