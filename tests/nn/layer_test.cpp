// Running recorded layers: inputs, parameters and d loss/d output from the formula of tests/goldens/layers.py.
#include "nn/layer_test.hpp"

#include <cmath>

#include "concord/ops/gradient.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "goldens.hpp"

namespace concord::test {
namespace {

Tensor fill(const Shape& shape, int salt) {
  Tensor tensor(DType::f32, shape);
  double at = 1;
  for (float& value : tensor.values<float>()) value = static_cast<float>(1.6 * std::sin(12.9898 * at++ + 4.1 * salt));
  return tensor;
}

Tensor parameter_fill(const Shape& shape, int salt) {
  Tensor tensor = fill(shape, salt);
  for (float& value : tensor.values<float>()) value = 0.5F + 0.4F * value;
  return tensor;
}

Shape shape_of(const nlohmann::json& dims) { return Shape(dims.get<std::vector<std::int64_t>>()); }

/// The variables of a graph by name.
std::map<std::string, VariablePtr> named(const Graph& graph) {
  std::map<std::string, VariablePtr> variables;
  for (const VariablePtr& variable : graph.variables()) variables.emplace(variable->name, variable);
  return variables;
}

/// A recorded layer on one device.
class Run {
 public:
  Run(const nlohmann::json& record, nn::Module& layer, const DevicePtr& device)
      : record_(record), variables_(std::make_shared<Variables>(device, 0)) {
    evaluation_.set_training(false);
    const TensorSpec spec{record.contains("indices") ? DType::i32 : DType::f32, shape_of(record.at("shape"))};
    const Value x = training_.input("x", spec);
    const Value output = layer(x);
    REQUIRE(output.shape() == shape_of(record.at("output shape")));
    const Value seed = training_.input("seed", output.spec());
    const Value loss = sum(output * seed);
    names_ = record.at("parameters").get<std::vector<std::string>>();
    std::vector<Value> wrt;
    for (const std::string& name : names_) {
      INFO("parameter " << name);
      REQUIRE(named(training_).contains(name));
      CHECK(named(training_).at(name)->trainable);
      wrt.push_back(training_.find(name));
    }
    if (spec.dtype == DType::f32) {
      names_.emplace_back("x");
      wrt.push_back(x);
    }
    results_ = {output};
    for (const Value& value : gradient(loss, wrt)) results_.push_back(value);
    program_ = std::make_unique<Program>(compile(training_, results_, variables_));
    evaluated_ = layer(evaluation_.input("x", spec));
  }

  void check(double tolerance) {
    int salt = 3;
    for (const auto& name : record_.at("parameters")) {
      const VariablePtr variable = named(training_).at(name.get<std::string>());
      variables_->write(variable->name, parameter_fill(variable->spec.shape, salt++));
    }
    write_state();
    Tensor x;
    for (int step = 0; step < record_.at("steps").get<int>(); ++step) {
      x = input_of(step);
      program_->write("x", x);
      program_->write("seed", fill(results_[0].shape(), 2));
      program_->run();
    }
    CHECK(difference(program_->read(results_[0]), record_.at("output")) < tolerance);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      INFO("gradient of " << names_[i]);
      CHECK(difference(program_->read(results_[i + 1]), record_.at("gradients").at(names_[i])) < tolerance);
    }
    if (record_.contains("after")) check_state(x, tolerance);
  }

 private:
  [[nodiscard]] Tensor input_of(int step) const {
    const Shape shape = shape_of(record_.at("shape"));
    if (!record_.contains("indices")) return fill(shape, 1 + 20 * step);
    return Tensor::of<std::int32_t>(shape, record_.at("indices").get<std::vector<std::int32_t>>());
  }

  void write_state() {
    if (!record_.contains("before")) return;
    for (const auto& [name, variable] : named(training_)) {
      const auto found = record_.at("before").find(name);
      if (found == record_.at("before").end()) continue;
      CHECK_FALSE(variable->trainable);
      variables_->write(name, tensor_of(variable->spec.shape, *found));
    }
  }

  void check_state(const Tensor& x, double tolerance) {
    const auto variables = named(training_);
    for (const auto& [name, values] : record_.at("after").items()) {
      INFO("state " << name);
      // Counted only where something depends on it.
      if (name == "num_batches_tracked" && !variables.contains(name)) continue;
      REQUIRE(variables.contains(name));
      CHECK(difference(variables_->read(name), values) < tolerance);
    }
    Program evaluation = compile(evaluation_, {{evaluated_}}, variables_);
    evaluation.write("x", x);
    evaluation.run();
    CHECK(difference(evaluation.read(evaluated_), record_.at("evaluated")) < tolerance);
  }

  const nlohmann::json& record_;
  VariablesPtr variables_;
  Graph training_, evaluation_;
  std::vector<std::string> names_;  // of the gradients
  std::vector<Value> results_;      // output, gradients
  Value evaluated_;
  std::unique_ptr<Program> program_;
};

}  // namespace

void check_layer(const std::string& name, nn::Module& layer, double tolerance) {
  static const nlohmann::json records = golden("layers.json").at("layers");
  INFO("layer " << name);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    Run(records.at(name), layer, device).check(tolerance);
  }
}

}  // namespace concord::test
