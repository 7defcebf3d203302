// LabelOutputs: a network for the columns of labels of one table. Its classes are cut into an output for each column,
// and targets have the units of the table.
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

/// The labels of a table that are numbers to be predicted.
[[nodiscard]] std::vector<data::CsvEncoding::Label> targets_of(const data::CsvEncoding& table);
/// The outputs that the labels of a table need: one for each label with classes, and one for all targets.
[[nodiscard]] std::vector<LabelOutput> label_outputs_of(const data::CsvEncoding& table);
/// Classes of a network that has all of them.
[[nodiscard]] int classes_of(const std::vector<LabelOutput>& outputs);
/// The network, whose last outputs are the targets of this table: they become y·deviation + mean, so that the network
/// itself learns numbers around 0. Its parameters keep their names. The same network for a table without targets.
[[nodiscard]] std::shared_ptr<nn::Module> with_units(std::shared_ptr<nn::Module> network,
                                                     const data::CsvEncoding& table);
/// The squared error of the targets of a table, (N, targets), each in deviations of its column: 1 is the error of their
/// means.
[[nodiscard]] Loss loss_of_targets(const data::CsvEncoding& table);
/// The network with these outputs, by name. Its parameters keep their names.
[[nodiscard]] std::shared_ptr<nn::Module> with_outputs(std::shared_ptr<nn::Module> network,
                                                       std::vector<LabelOutput> outputs);
/// The sum of the cross entropies of classes and of the squared error of targets.
[[nodiscard]] Objective objective_of_outputs(const std::vector<LabelOutput>& outputs, const data::CsvEncoding& table,
                                             const loss::CrossEntropy& cross_entropy);

}  // namespace concord::cli
