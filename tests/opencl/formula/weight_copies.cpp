// Copies of weights in 16 bits that updates write: the numbers are those of a program that makes the copies in each
// run, whatever happens to the weights.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

Tensor tensor_of(const Array& array) {
  return Tensor::of(array.shape, std::vector<float>(array.values.begin(), array.values.end()));
}

bool has_same_bits(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

/// Two trainings of one network: one whose updates write the copies, and one that keeps every value, and so makes the
/// copies in each run.
class Trainings {
 public:
  Trainings(const DevicePtr& device, Precision precision, const optim::Optimizer& optimizer,
            const optim::MinimizeOptions& options, bool shares_buffer = false)
      : device_(std::make_shared<OfferingDevice>(device, taken_, true, opencl::ChannelAxis::last)) {
    // The normalisations read the two matrices as tokens; the vector has no copy.
    const Value a = parameter("a", {16, 24}), b = parameter("b", {8, 40}), c = parameter("c", {24});
    const Value x = graph_.input("x", {DType::f32, {16, 24}});
    Value loss = mean(row_norm(a, 1).dst * x * c) + mean(square(row_norm(b, 1).dst + 1.0F) * mean(x));
    if (shares_buffer) loss = loss + mean(row_norm(named_otherwise(), 1).dst * a);
    optim::minimize(loss, optimizer, options);
    for (const Retain retain : {Retain::outputs, Retain::fused}) {
      variables_.push_back(std::make_shared<Variables>(device_, 1));
      if (shares_buffer) bind_both(*variables_.back());
      programs_.push_back(compile(graph_, loss, variables_.back(), {.retain = retain, .precision = precision}));
    }
    set_input(normal({16, 24}, 7));
    CHECK(std::ranges::any_of(taken_, [](const std::string& name) { return name.starts_with("row_norm"); }));
  }

  void set_input(const Array& value) {
    for (Program& program : programs_) program.write("x", tensor_of(value));
  }
  void write(const std::string& name, const Array& value) {
    for (const VariablesPtr& variables : variables_) variables->write(name, tensor_of(value));
  }
  /// Runs a program of its own that halves this weight.
  void halve(const std::string& name) {
    for (const VariablesPtr& variables : variables_) {
      Graph graph;
      const Value weight = graph.variable(graph_.find(name).node().variable);
      graph.assign(weight, weight * 0.5F);
      compile(graph, std::vector<Value>{}, variables, {}).run();
    }
  }
  void run() {
    for (Program& program : programs_) program.run();
    check_equal();
  }
  void check_equal() {
    const std::map<std::string, Tensor> kept = variables_[1]->read_all();
    for (const auto& [name, value] : variables_[0]->read_all()) {
      INFO(name);
      CHECK(has_same_bits(value, kept.at(name)));
    }
  }

  /// The reorders of a run that begins with a weight.
  [[nodiscard]] static std::size_t reorders_of_weights(Program& program) {
    const std::vector<TraceEntry> entries = program.run_traced();
    return static_cast<std::size_t>(std::ranges::count_if(
        entries, [](const TraceEntry& entry) { return entry.node == "reorder/a" || entry.node == "reorder/b"; }));
  }
  [[nodiscard]] Program& with_copies() { return programs_[0]; }
  [[nodiscard]] Program& without() { return programs_[1]; }
  [[nodiscard]] Tensor read(const std::string& name) const { return variables_[0]->read(name); }

 private:
  Value parameter(const std::string& name, Shape shape) {
    Variable variable{.name = name, .spec = {DType::f32, shape}, .init = {}, .role = VariableRole::parameter};
    variable.trainable = true;
    variable.value = tensor_of(normal(shape, 3));
    return graph_.variable(std::make_shared<Variable>(std::move(variable)));
  }

  /// Puts "a" and "b" into one buffer; "other" is a second name of "a", which no program assigns.
  void bind_both(Variables& variables) {
    constexpr std::size_t kBehindA = 2048;
    const BufferPtr buffer = device_->allocate(2 * kBehindA);
    for (const auto& [name, parameter, offset] :
         {std::tuple{"a", "a", std::size_t{0}}, {"other", "a", std::size_t{0}}, {"b", "b", kBehindA}}) {
      const Variable& variable = *graph_.find(parameter).node().variable;
      variables.bind(name, variable.spec, Storage(buffer, offset));
      variables.write(name, variable.value);
    }
  }
  Value named_otherwise() {
    Variable other{.name = "other", .spec = {DType::f32, {16, 24}}, .init = {}};
    return graph_.variable(std::make_shared<Variable>(std::move(other)));
  }

  std::set<std::string> taken_;
  DevicePtr device_;
  Graph graph_;
  std::vector<VariablesPtr> variables_;
  std::vector<Program> programs_;
};

struct Training {
  const char* name;
  optim::Optimizer optimizer;
  optim::MinimizeOptions options;
};

std::vector<Training> trainings() {
  return {{"sgd", optim::Sgd{.lr = 0.1, .momentum = 0.9}, {}},
          {"adamw", optim::AdamW{.lr = 0.05}, {.clip = {.norm = 0.01}, .ema_decay = 0.9}},
          {"accumulation", optim::Adam{.lr = 0.05}, {.accumulate = 3}},
          {"loss scale", optim::Sgd{.lr = 0.1}, {.loss_scale = 1024}}};
}

}  // namespace

TEST_CASE("updates write the copies of weights, and the numbers stay", "[opencl][tokens]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      for (const Training& training : trainings()) {
        INFO(training.name << " in " << name_of(precision) << " on " << device->info().id);
        Trainings both(device, precision, training.optimizer, training.options);
        const Tensor before = both.read("a");
        for (int step = 0; step < 6; ++step) {
          both.set_input(normal({16, 24}, static_cast<std::uint32_t>(step)));
          both.run();
        }
        CHECK_FALSE(has_same_bits(both.read("a"), before));
        CHECK(Trainings::reorders_of_weights(both.with_copies()) == 0);
        CHECK(Trainings::reorders_of_weights(both.without()) == 2);
        both.run();
      }
    }
  }
}

TEST_CASE("a weight that others change between runs gets a new copy", "[opencl][tokens]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    Trainings both(device, Precision::bf16, optim::AdamW{.lr = 0.05}, {});
    both.run();
    both.write("a", normal({16, 24}, 11));
    both.run();
    both.run();
    both.halve("b");
    both.run();
    both.write(optim::kRate, Array({}, {0.01}));  // no copy depends on it
    both.run();
    both.write("b", normal({8, 40}, 12));
    both.halve("b");
    both.halve("a");
    both.run();
    both.run();
  }
}

TEST_CASE("copies of weights in one buffer, and of one under two names", "[opencl][tokens]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    Trainings both(device, Precision::bf16, optim::AdamW{.lr = 0.05}, {}, true);
    both.run();
    both.run();
    both.write("b", normal({8, 40}, 12));
    both.run();
    both.run();
  }
}

TEST_CASE("a step that changes no weight changes no copy", "[opencl][tokens]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    // Without a loss scale all steps behind the bad one are left out, too. With one only gradients overflow.
    for (const double scale : {0.0, 65536.0}) {
      Trainings both(device, Precision::bf16, optim::Sgd{.lr = 0.1, .momentum = 0.9}, {.loss_scale = scale});
      both.run();
      const Tensor before = both.read("a");
      Array bad = normal({16, 24}, 7, 2e36);
      if (scale == 0) bad.values[5] = std::numeric_limits<double>::infinity();
      both.set_input(bad);
      both.run();
      CHECK(has_same_bits(both.read("a"), before));
      both.set_input(normal({16, 24}, 8));
      both.run();
      both.run();
      CHECK(has_same_bits(both.read("a"), before) == (scale == 0));
    }
  }
}

}  // namespace concord::test
