// The network of AlphaGo Zero with 19 residual blocks (Silver et al., "Mastering the game of Go without human
// knowledge", 2017): 17 planes of a position → logits of the moves (every point, then pass) and the value of the
// position, (N, points + 2). The number of classes is that of the moves, so it sets the size of the board.
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr int kPlanes = 17, kWidth = 256, kBlocks = 19;

struct Residual : nn::Module {
  nn::Sequential first, second;
  Residual()
      : first(conv_norm(kWidth, kWidth, 3)), second(conv_norm(kWidth, kWidth, 3, {.activation = Activation::none})) {}
  Value forward(Value x) override { return relu(x + second(first(x))); }
  Children children() override { return {{"first", &first}, {"second", &second}}; }
};

struct AlphaGoZero : nn::Module {
  nn::Sequential tower, policy, value;
  explicit AlphaGoZero(std::int64_t points) {
    tower.push(conv_norm(kPlanes, kWidth, 3));
    for (int i = 0; i < kBlocks; ++i) tower.push(Residual{});
    policy = nn::Sequential{conv_norm(kWidth, 2, 1), nn::Flatten{}, nn::Linear{2 * points, points + 1}};
    value = nn::Sequential{conv_norm(kWidth, 1, 1), nn::Flatten{}, nn::Linear{points, 256}, nn::ReLU{},
                           nn::Linear{256, 1},      nn::Tanh{}};
  }
  Value forward(Value x) override {
    const Value position = tower(x);
    return concat({policy(position), value(position)}, 1);
  }
  Children children() override { return {{"tower", &tower}, {"policy", &policy}, {"value", &value}}; }
};

std::shared_ptr<nn::Module> make_alphago_zero(const Variant& variant) {
  const std::int64_t points = variant.classes - 1;
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(points))));
  CONCORD_CHECK(points > 0 && side * side == points, ArgumentError,
                "alphago_zero: {} moves are not those of a square board and pass", variant.classes);
  return std::make_shared<AlphaGoZero>(points);
}

}  // namespace

Model alphago_zero() {
  return {"alphago_zero",    "policy and value of a Go position, 19 residual blocks",
          Shape{17, 19, 19}, 362,
          22827877,          make_alphago_zero,
          Shape{17, 19, 19}, Task::policy_value};
}

}  // namespace concord::models
