// Slices of a network's classes.
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

}  // namespace

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

Objective objective_of_outputs(const std::vector<LabelOutput>& outputs, const loss::CrossEntropy& cross_entropy) {
  std::vector<OutputLoss> losses;
  for (const LabelOutput& output : outputs) {
    losses.push_back({output.name, output.has_classes ? Loss(cross_entropy) : Loss(loss::mse)});
  }
  return losses;
}

}  // namespace concord::cli
