// Random networks: what a device's kernels make of them, fused and unfused, held against double precision.
//   CONCORD_RANDOM_NETWORKS=10000    so many on each device, instead of the few of a default run
//   CONCORD_RANDOM_FIRST=5000        from this seed on
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compile/random_network.hpp"
#include "concord/compare/reference64/evaluate.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compare/tolerance/tolerance.hpp"
#include "concord/compile/program.hpp"
#include "concord/core/platform.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord_test.hpp"
#include "forwarding_device.hpp"

namespace concord::test {
namespace {

/// The numbers of every value that has a reference, by name: each from those before it, in double precision, rounded to
/// f32.
using Reference = std::map<std::string, Tensor>;

Tensor rounded(const float64::Values& exact, const TensorSpec& spec) {
  Tensor tensor(spec);
  const auto fill = [&](auto values) {
    using T = typename decltype(values)::value_type;
    std::ranges::transform(exact, values.begin(), [](double x) {
      return std::abs(x) < 0x1p-126 ? T{0} : static_cast<T>(x);  // processors take these for 0
    });
  };
  spec.dtype == DType::f32 ? fill(tensor.values<float>()) : fill(tensor.values<std::int32_t>());
  return tensor;
}

/// Leaves out what has no reference, and what is computed from that.
void add_results(const Graph& graph, std::int32_t place, Reference& reference) {
  const Node& node = graph.node(place);
  ReplayedNode replayed;
  replayed.op = node.op.get();
  for (const Value& input : node.inputs) {
    const auto found = reference.find(input.name());
    if (found == reference.end()) return;
    replayed.inputs.push_back(found->second);
  }
  for (const TensorSpec& spec : node.outputs) replayed.results.emplace_back(spec);
  const auto name = [&](std::size_t k) {
    return Value(const_cast<Graph*>(&graph), place, static_cast<std::int32_t>(k)).name();
  };
  if (node.op->is_alias()) {
    std::ranges::copy(replayed.inputs[0].bytes(), replayed.results[0].bytes().begin());
    reference.emplace(name(0), replayed.results[0]);
  } else if (const float64::Results exact = float64::evaluate(replayed)) {
    for (std::size_t k = 0; k < exact->size(); ++k) {
      if (!(*exact)[k].empty()) reference.emplace(name(k), rounded((*exact)[k], node.outputs[k]));
    }
  }
}

Reference reference_of(const RandomNetwork& network) {
  Reference reference = network.inputs;
  reference.insert(network.variables.begin(), network.variables.end());
  for (std::int32_t place = 0; place < network.graph.size(); ++place) {
    if (network.graph.node(place).op != nullptr) add_results(network.graph, place, reference);
  }
  return reference;
}

/// One network on one device.
class Trial {
 public:
  Trial(std::uint32_t seed, const DevicePtr& device)
      : network_(seed),
        device_(device),
        precision_(precision_for(seed, device->info())),
        reference_(reference_of(network_)) {}

  /// The first result that rounding does not explain; empty where there is none.
  std::string fault() {
    check(CompileOptions{.retain = Retain::all, .precision = precision_}, "unfused");
    if (fault_.empty()) check(CompileOptions{.retain = Retain::fused, .precision = precision_}, "fused");
    if (fault_.empty()) check_run();
    return fault_;
  }

 private:
  static Precision precision_for(std::uint32_t seed, const DeviceInfo& info) {
    return precision_of(info.precisions[seed % info.precisions.size()]);
  }

  Program compiled(const CompileOptions& options) const {
    const auto variables = std::make_shared<Variables>(device_, 1);
    Program program = compile(network_.graph, network_.outputs, variables, options);
    const std::vector<std::string> known = program.values();
    for (const auto& [name, tensor] : network_.inputs) {
      if (std::ranges::find(known, name) != known.end()) program.write(name, tensor);
    }
    for (const auto& [name, tensor] : network_.variables) {
      if (variables->contains(name)) variables->write(name, tensor);
    }
    return program;
  }

  /// Every operator on the inputs that double precision gives it, rounded to f32.
  void check(const CompileOptions& options, const char* form) {
    Program program = compiled(options);
    program.replay(
        [&](const std::string& value) -> const Tensor* {
          const auto found = reference_.find(value);
          return found == reference_.end() ? nullptr : &found->second;
        },
        [&](const ReplayedNode& node) { check_node(node, form); });
  }

  void check_node(const ReplayedNode& node, const char* form) {
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const auto expected = reference_.find(node.outputs[k]);
      if (expected == reference_.end()) continue;
      const double tolerance = tolerance_of(node, k, precision_);
      const double error = comparable_error(largest_difference(node.results[k], expected->second), tolerance);
      if (error <= tolerance || !fault_.empty()) continue;
      fault_ =
          fmt::format("{} ({}) by the kernel {}, {}: error {:.3g}, tolerance {:.3g} ({}, {})", node.entry.node,
                      node.entry.op, node.entry.kernel, form, error, tolerance, node.entry.shapes, name_of(precision_));
    }
  }

  /// A run as users have it, with memory shared, gives the bits of the kernels one by one, the first time and again.
  void check_run() {
    Program kept = compiled({.retain = Retain::fused, .precision = precision_});
    Program program = compiled({.precision = precision_});
    kept.run();
    for (const char* which : {"first", "second"}) {
      program.run();
      for (const Value& output : network_.outputs) {
        if (output.node().op == nullptr) continue;
        if (!std::ranges::equal(program.read(output).bytes(), kept.read(output).bytes())) {
          fault_ = fmt::format("{}: other bits in the {} run than with memory of its own", output.name(), which);
        }
      }
    }
  }

  RandomNetwork network_;
  DevicePtr device_;
  Precision precision_;
  Reference reference_;
  std::string fault_;
};

std::uint32_t number_of(const char* variable, std::uint32_t otherwise) {
  const auto text = environment(variable);
  std::uint32_t number = otherwise;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

/// A device that compiles kernels takes a second for each network, the CPU some milliseconds.
std::uint32_t networks_for(const Device& device) {
  return number_of("CONCORD_RANDOM_NETWORKS", device.info().id == "cpu" ? 1000 : 25);
}

/// `formula` without the constant that is added or multiplied behind another one.
Scalar without_second_constant(const Scalar& formula) {
  const auto constant_step = [](const Scalar& one) -> const Scalar* {
    const auto& node = one.node();
    if (node.function != ScalarFunction::add && node.function != ScalarFunction::multiply) return nullptr;
    for (int k : {0, 1}) {
      if (node.arguments[static_cast<std::size_t>(k)].node().function == ScalarFunction::constant) {
        return &node.arguments[static_cast<std::size_t>(1 - k)];
      }
    }
    return nullptr;
  };
  const Scalar* const inner = constant_step(formula);
  if (inner != nullptr && constant_step(*inner) != nullptr) return *inner;
  if (formula.node().arguments.empty()) return formula;
  std::vector<Scalar> arguments;
  for (const Scalar& argument : formula.node().arguments) arguments.push_back(without_second_constant(argument));
  return scalar::apply(formula.node().function, std::move(arguments));
}

/// Computes an epilogue with two constant steps in a row without the second one, as oneDNN 2.6 does.
class ForgetsSecondConstant final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const TensorSpec& output, const Expression& epilogue,
                                       std::span<const TensorSpec> extra, Precision precision) const override {
    return ForwardingDevice::supports_epilogue(op, op_inputs, output, shortened(epilogue), extra, precision);
  }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    const auto* fused = dynamic_cast<const ops::Fused*>(request.op);
    if (fused == nullptr) return ForwardingDevice::prepare(request);
    const ops::Fused wrong(fused->base(), fused->base_inputs(), shortened(fused->epilogue()),
                           std::string(fused->name()));
    KernelRequest changed = request;
    changed.op = &wrong;
    return ForwardingDevice::prepare(changed);
  }

 private:
  static Expression shortened(const Expression& epilogue) {
    return {{without_second_constant(epilogue.formulas()[0])}, epilogue.inputs()};
  }
};

}  // namespace

TEST_CASE("random networks: fused and unfused kernels give what double precision gives", "[compile][networks]") {
  for (const DevicePtr& device : devices()) {
    const std::uint32_t first = number_of("CONCORD_RANDOM_FIRST", 0), count = networks_for(*device);
    std::uint32_t faults = 0;
    for (std::uint32_t seed = first; seed < first + count; ++seed) {
      const std::string fault = Trial(seed, device).fault();
      if (fault.empty()) continue;
      ++faults;
      UNSCOPED_INFO("network " << seed << " on " << device->info().id << ": " << fault);
    }
    CHECK(faults == 0);
  }
}

TEST_CASE("networks whose batch norms have constant rows", "[compile][networks]") {
  for (const std::uint32_t seed : {24128U, 25605U}) {
    for (const DevicePtr& device : devices()) {
      INFO("network " << seed << " on " << device->info().id);
      CHECK(Trial(seed, device).fault() == "");
    }
  }
}

TEST_CASE("random networks find a device that forgets the second of two constant steps", "[compile][networks]") {
  const DevicePtr device = std::make_shared<ForgetsSecondConstant>(devices().front());
  std::uint32_t found = 0;
  for (std::uint32_t seed = 0; seed < 300 && found == 0; ++seed) found += Trial(seed, device).fault().empty() ? 0 : 1;
  CHECK(found == 1);
}

}  // namespace concord::test
