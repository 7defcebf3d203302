// Slices of a network's classes, and units of its targets.
#include "concord/cli/label_outputs.hpp"

#include "concord/core/check.hpp"

namespace concord::cli {
namespace {

std::int64_t width_of(const LabelOutput& output) { return std::ssize(output.names); }

class SlicedNetwork final : public nn::Module {
 public:
  SlicedNetwork(std::shared_ptr<nn::Module> network, std::vector<LabelOutput> outputs)
      : network_(std::move(network)), outputs_(std::move(outputs)) {}
  /// The network is traced in place of this module, so that names begin at it.
  Values forward_values(const Values& inputs) override {
    const Value all = network_->forward(inputs.only());
    CONCORD_CHECK(all.shape().rank() == 2, ShapeError,
                  "several labels need a network with one output (N, classes), not {}", all.shape().str());
    Values outputs;
    std::int64_t first = 0;
    for (const LabelOutput& output : outputs_) {
      outputs.add(output.name, slice(all, 1, first, first + width_of(output)));
      first += width_of(output);
    }
    return outputs;
  }
  Children children() override { return network_->children(); }

 private:
  std::shared_ptr<nn::Module> network_;
  std::vector<LabelOutput> outputs_;
};

using Labels = std::vector<data::CsvEncoding::Label>;

/// Column `first` + i becomes `change(column, targets[i])`; those before `first` stay.
template <class Change>
Value change_columns(const Value& all, std::int64_t first, const Labels& targets, const Change& change) {
  std::vector<Value> columns;
  if (first > 0) columns.push_back(slice(all, 1, 0, first));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    columns.push_back(change(slice(all, 1, at, at + 1), targets[i]));
  }
  return columns.size() == 1 ? columns[0] : concat(columns, 1);
}

class NetworkInUnits final : public nn::Module {
 public:
  NetworkInUnits(std::shared_ptr<nn::Module> network, Labels targets)
      : network_(std::move(network)), targets_(std::move(targets)) {}
  /// The network is traced in place of this module, so that names begin at it.
  Value forward(Value x) override {
    const Value all = network_->forward(x);
    const std::int64_t first = all.shape().rank() == 2 ? all.shape()[1] - std::ssize(targets_) : -1;
    CONCORD_CHECK(first >= 0, ShapeError, "{} targets need a network with one output (N, targets), not {}",
                  targets_.size(), all.shape().str());
    return change_columns(all, first, targets_, [](const Value& column, const data::CsvEncoding::Label& target) {
      return column * static_cast<float>(target.deviation) + static_cast<float>(target.mean);
    });
  }
  Children children() override { return network_->children(); }

 private:
  std::shared_ptr<nn::Module> network_;
  Labels targets_;
};

}  // namespace

std::vector<data::CsvEncoding::Label> targets_of(const data::CsvEncoding& table) {
  Labels targets;
  for (const data::CsvEncoding::Label& label : table.labels) {
    if (label.classes.empty()) targets.push_back(label);
  }
  return targets;
}

std::shared_ptr<nn::Module> with_units(std::shared_ptr<nn::Module> network, const data::CsvEncoding& table) {
  Labels targets = targets_of(table);
  if (targets.empty()) return network;
  return std::make_shared<NetworkInUnits>(std::move(network), std::move(targets));
}

Loss loss_of_targets(const data::CsvEncoding& table) {
  return [targets = targets_of(table)](const Value& prediction, const Value& target) {
    const auto in_deviations = [&](const Value& all) {
      return change_columns(all, 0, targets, [](const Value& column, const data::CsvEncoding::Label& label) {
        return column * static_cast<float>(1 / label.deviation);
      });
    };
    return loss::mse(in_deviations(prediction), in_deviations(target));
  };
}

std::vector<LabelOutput> label_outputs_of(const data::CsvEncoding& table) {
  std::vector<LabelOutput> outputs;
  LabelOutput targets{{}, {}, false};
  for (const data::CsvEncoding::Label& label : table.labels) {
    if (label.classes.empty()) {
      targets.names.push_back(label.name);
    } else {
      outputs.push_back({label.name, label.classes, true});
    }
  }
  if (targets.names.empty()) return outputs;
  targets.name = targets.names[0];
  outputs.push_back(std::move(targets));
  return outputs;
}

int classes_of(const std::vector<LabelOutput>& outputs) {
  std::int64_t classes = 0;
  for (const LabelOutput& output : outputs) classes += width_of(output);
  return static_cast<int>(classes);
}

std::shared_ptr<nn::Module> with_outputs(std::shared_ptr<nn::Module> network, std::vector<LabelOutput> outputs) {
  return std::make_shared<SlicedNetwork>(std::move(network), std::move(outputs));
}

Objective objective_of_outputs(const std::vector<LabelOutput>& outputs, const data::CsvEncoding& table,
                               const loss::CrossEntropy& cross_entropy) {
  std::vector<OutputLoss> losses;
  for (const LabelOutput& output : outputs) {
    losses.push_back({output.name, output.has_classes ? Loss(cross_entropy) : loss_of_targets(table)});
  }
  return losses;
}

}  // namespace concord::cli
