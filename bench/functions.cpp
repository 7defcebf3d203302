// Times pointwise functions, their derivatives and softmax over 1.6 million elements on one device:
//
//   bench_functions DEVICE [ROUNDS]
//
// Prints CSV, a line a function: function, device, nanoseconds an element forward and backward. The former is the time
// of all launches of a program that has the function alone; the latter that of the launches whose names have
// `_backward`, in a program that has the gradient too. Each is the shortest of ROUNDS (30) runs.
// bench/functions_vs_pytorch sets PyTorch beside it. Exit code: 0, 1 where something fails, 2 for wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "concord/concord.hpp"
#include "concord/ops/activations.hpp"

namespace {

using namespace concord;

constexpr std::int64_t kRows = 1600, kColumns = 1000;

/// `formula` of the element as an operator.
template <Scalar (*formula)(const Scalar&)>
Value of_scalar(Value x) {
  return pointwise("function", {x}, formula(scalar::input(0)));
}

struct Function {
  const char* name;
  Value (*build)(Value);
  bool is_positive = false;  // the arguments: in [0.05, 3.05] instead of N(0, 1)
};

const std::vector<Function> kFunctions = {
    {"relu", [](Value x) { return relu(x); }},
    {"exp", of_scalar<scalar::exp>},
    {"expm1", of_scalar<scalar::expm1>},
    {"log", of_scalar<scalar::log>, true},
    {"log1p", of_scalar<scalar::log1p>, true},
    {"sqrt", of_scalar<scalar::sqrt>, true},
    {"rsqrt", of_scalar<scalar::rsqrt>, true},
    {"pow", [](Value x) { return pointwise("pow", {x}, scalar::power(scalar::input(0), 2.3F)); }, true},
    {"sin", of_scalar<scalar::sin>},
    {"cos", of_scalar<scalar::cos>},
    {"tanh", of_scalar<scalar::tanh>},
    {"erf", of_scalar<scalar::erf>},
    {"ndtr", of_scalar<scalar::normal_cdf>},
    {"sigmoid", [](Value x) { return sigmoid(x); }},
    {"logsigmoid", [](Value x) { return log_sigmoid(x); }},
    {"softplus", [](Value x) { return softplus(x); }},
    {"gelu", [](Value x) { return gelu(x); }},
    {"gelu_tanh", [](Value x) { return gelu_tanh(x); }},
    {"silu", [](Value x) { return silu(x); }},
    {"mish", [](Value x) { return mish(x); }},
    {"elu", [](Value x) { return elu(x); }},
    {"selu", [](Value x) { return selu(x); }},
    {"softsign", [](Value x) { return softsign(x); }},
    {"hardswish", [](Value x) { return hard_swish(x); }},
    {"softmax", [](Value x) { return softmax(x, 1); }},
    {"log_softmax", [](Value x) { return log_softmax(x, 1); }},
};

Tensor arguments_of(bool is_positive) {
  std::vector<float> values(kRows * kColumns);
  std::uint32_t state = 1;
  const auto uniform = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(state >> 8) * 0x1p-24F;
  };
  for (float& value : values) {
    if (is_positive) {
      value = 0.05F + 3 * uniform();
      continue;
    }
    value = -6;  // the sum of twelve: near enough to N(0, 1)
    for (int i = 0; i < 12; ++i) value += uniform();
  }
  return Tensor::of<float>(Shape{kRows, kColumns}, values);
}

/// Nanoseconds an element of the fastest run.
double time_of(const DevicePtr& device, const Function& function, bool with_gradient, int rounds) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{kRows, kColumns}});
  const Value seed = graph.input("seed", {DType::f32, Shape{kRows, kColumns}});
  std::vector<Value> outputs{function.build(x)};
  if (with_gradient) outputs.push_back(gradient(sum(outputs[0] * seed), std::vector{x}).front());
  Program program = compile(graph, outputs, std::make_shared<Variables>(device, 7), {});
  program.write("x", arguments_of(function.is_positive));
  if (with_gradient) program.write("seed", arguments_of(true));
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    double seconds = 0;
    // The loss is there for its gradient: its own launches do not count.
    for (const TraceEntry& entry : program.run_traced()) {
      const bool counts = !with_gradient || entry.node.find("_backward") != std::string::npos;
      seconds += counts ? entry.seconds : 0;
    }
    best = std::min(best, seconds);
  }
  return best / static_cast<double>(kRows * kColumns) * 1e9;
}

}  // namespace

int main(int count, char** words) try {
  const int rounds = count > 2 ? std::atoi(words[2]) : 30;
  if (count < 2 || count > 3 || rounds < 1) {
    std::fputs("usage: bench_functions DEVICE [ROUNDS]\n", stderr);
    return 2;
  }
  const DevicePtr device = Device::open(words[1]);
  std::puts("function,device,forward,backward");
  for (const Function& function : kFunctions) {
    fmt::print("{},{},{:.3f},{:.3f}\n", function.name, words[1], time_of(device, function, false, rounds),
               time_of(device, function, true, rounds));
    std::fflush(stdout);
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_functions: {}\n", error.what());
  return 1;
}
