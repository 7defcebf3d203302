// What a convolution or product with an epilogue gives, by whatever implementation oneDNN chooses for its sizes.
#include <algorithm>
#include <cmath>

#include "concord/compile/program.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord_test.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

/// The largest difference between the fused program's result and that of its operators one by one.
double difference(const Graph& graph, const Value& result, const std::map<std::string, Tensor>& inputs) {
  const DevicePtr device = Device::open("cpu");
  const std::vector<Value> outputs{result};
  const auto values = [&](const CompileOptions& options) {
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 1), options);
    const std::vector<std::string> known = program.values();
    for (const auto& [name, tensor] : inputs) {
      if (std::ranges::find(known, name) != known.end()) program.write(name, tensor);
    }
    program.run();
    return program.read(result);
  };
  const Tensor fused = values({}), alone = values({.retain = Retain::all});
  double largest = 0;
  for (std::size_t i = 0; i < fused.values<float>().size(); ++i) {
    const double one =
        std::abs(static_cast<double>(fused.values<float>()[i]) - static_cast<double>(alone.values<float>()[i]));
    largest = one <= largest ? largest : one;  // NaN stays
  }
  return largest;
}

struct Case {
  Shape src, weights;
  std::array<std::int64_t, 2> stride, padding;
  std::int64_t groups = 1;
};

/// A graph with a convolution of these sizes, and numbers for its inputs.
struct Convolution {
  explicit Convolution(const Case& c)
      : x(input("x", c.src)),
        y(conv2d(x, input("w", c.weights), {.stride = c.stride, .padding = c.padding, .groups = c.groups})),
        whole(input("whole", y.shape())),
        other(input("other", y.shape())),
        channels(input("channels", Shape{y.shape()[1], 1, 1})) {}
  Value input(const std::string& name, const Shape& shape) {
    inputs.emplace(name, normal_tensor(shape, static_cast<std::uint32_t>(inputs.size()) + 1));
    return graph.input(name, {DType::f32, shape});
  }

  std::map<std::string, Tensor> inputs;
  Graph graph;
  Value x, y, whole, other, channels;
};

/// Sizes for which oneDNN takes kernels of several kinds: products of patches, compiled ones, depthwise ones.
std::vector<Case> cases() {
  std::vector<Case> all{
      {{2, 7, 3, 2}, {1, 7, 1, 1}, {2, 1}, {1, 0}},    {{4, 32, 13, 5}, {6, 32, 1, 1}, {3, 1}, {1, 0}},
      {{1, 17, 5, 7}, {8, 17, 1, 2}, {1, 3}, {0, 1}},  {{2, 3, 7, 6}, {5, 3, 3, 3}, {1, 1}, {1, 1}},
      {{2, 32, 6, 6}, {32, 32, 3, 3}, {1, 1}, {1, 1}}, {{2, 16, 5, 5}, {24, 16, 1, 1}, {1, 1}, {0, 0}},
      {{1, 8, 5, 5}, {6, 4, 3, 3}, {1, 1}, {0, 0}, 2}, {{2, 16, 8, 8}, {16, 1, 3, 3}, {1, 1}, {1, 1}, 16},
      {{2, 5, 6, 6}, {5, 1, 3, 3}, {2, 2}, {1, 1}, 5}, {{3, 2, 1, 1}, {2, 2, 1, 1}, {1, 1}, {0, 0}}};
  return all;
}

}  // namespace

/// A convolution that oneDNN 2.6 computes as a product of patches takes operands of the whole result for others.
TEST_CASE("a convolution with a chain behind it gives what its operators give, whatever the sizes", "[cpu]") {
  using Chain = Value (*)(const Convolution&);
  const std::vector<Chain> chains{
      [](const Convolution& c) { return c.y + c.whole; },
      [](const Convolution& c) { return c.y * c.whole; },
      [](const Convolution& c) { return c.y - c.whole; },
      [](const Convolution& c) { return c.y * c.channels; },
      [](const Convolution& c) { return relu(c.y + c.channels + c.whole); },
      [](const Convolution& c) { return (c.y * 0.5F + c.whole) * c.channels; },
      [](const Convolution& c) { return c.y * 0.5F + 0.25F; },
      [](const Convolution& c) { return relu((c.y + 0.25F) * 0.5F); },
      [](const Convolution& c) { return c.y * c.whole - c.other; },
  };
  for (const Case& sizes : cases()) {
    for (std::size_t k = 0; k < chains.size(); ++k) {
      const Convolution c(sizes);
      INFO("chain " << k << ", " << sizes.src.str() << ", weights " << sizes.weights.str());
      CHECK(difference(c.graph, chains[k](c), c.inputs) < 1e-4);
    }
  }
}

}  // namespace concord::test
