// The domain ai.onnx.preview.training: Gradient, and the optimizers Adagrad, Adam and Momentum as formulas.
#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::onnx {
namespace {

constexpr const char* kTraining = "ai.onnx.preview.training";

// Calls update(k, tensors) for each of the n optimised tensors; inputs are R, T, then `kinds` groups of n tensors.
template <class Update>
void each_optimised(Call& call, std::size_t kinds, Update&& update) {
  CONCORD_CHECK(call.inputs() > 2 && (call.inputs() - 2) % kinds == 0, FormatError, "{} inputs", call.inputs());
  const std::size_t count = (call.inputs() - 2) / kinds;
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<Value> operands{reshape(call.number_value(0), Shape{}), reshape(call.number_value(1), Shape{})};
    for (std::size_t kind = 0; kind < kinds; ++kind) operands.push_back(call.number_value(2 + kind * count + k));
    const std::vector<Scalar> formulas = update();
    const auto results = pointwise("update", operands, formulas, std::vector<DType>(formulas.size(), DType::f32));
    for (std::size_t r = 0; r < results.size(); ++r) call.set(r * count + k, results[r], ElementType::f32);
  }
}

const Scalar& rate() {
  static const Scalar r = scalar::input(0);
  return r;
}

void adagrad(Call& call) {
  const float decay = call.number("decay_factor", 0), epsilon = call.number("epsilon", 1e-6F),
              norm = call.number("norm_coefficient", 0);
  each_optimised(call, 3, [&]() -> std::vector<Scalar> {
    const Scalar x = scalar::input(2), h = scalar::input(4), step = scalar::input(1);
    const Scalar g = norm * x + scalar::input(3), moved = h + g * g;
    return {x - rate() / (1.0F + step * decay) * g / (scalar::sqrt(moved) + epsilon), moved};
  });
}

void adam(Call& call) {
  const float alpha = call.number("alpha", 0.9F), beta = call.number("beta", 0.999F),
              epsilon = call.number("epsilon", 1e-6F), norm = call.number("norm_coefficient", 0),
              after = call.number("norm_coefficient_post", 0);
  each_optimised(call, 4, [&]() -> std::vector<Scalar> {
    const Scalar x = scalar::input(2), step = scalar::input(1), g = norm * x + scalar::input(3);
    const Scalar v = alpha * scalar::input(4) + (1 - alpha) * g, h = beta * scalar::input(5) + (1 - beta) * g * g;
    const Scalar corrected =
        rate() * scalar::sqrt(1.0F - scalar::power(beta, step)) / (1.0F - scalar::power(alpha, step));
    const Scalar r = scalar::select(scalar::less(0.0F, step), corrected, rate());
    return {(1 - after) * (x - r * v / (scalar::sqrt(h) + epsilon)), v, h};
  });
}

void momentum_of(Call& call) {
  const float alpha = call.number("alpha", 0), beta = call.number("beta", 0), norm = call.number("norm_coefficient", 0);
  const std::string mode = call.text("mode", "standard");
  CONCORD_CHECK(mode == "standard" || mode == "nesterov", NotSupported, "the mode '{}' is unknown", mode);
  each_optimised(call, 3, [&]() -> std::vector<Scalar> {
    const Scalar x = scalar::input(2), g = norm * x + scalar::input(3);
    const Scalar factor = scalar::select(scalar::less(0.0F, scalar::input(1)), beta, 1.0F);
    const Scalar v = alpha * scalar::input(4) + factor * g;
    return {x - rate() * (mode == "nesterov" ? g + alpha * v : v), v};
  });
}

// The gradient of the sum of y with respect to xs, at the values that this graph gives them.
void gradient_of(Call& call) {
  const std::vector<std::string> xs = call.texts("xs");
  const std::string y = call.text("y", "");
  std::vector<Value> wrt;
  for (const std::string& name : xs) wrt.push_back(call.named_value(name));
  const std::vector<Value> gradients = gradient(sum(call.named_value(y)), wrt);
  for (std::size_t k = 0; k < gradients.size(); ++k) call.set(k, gradients[k], ElementType::f32);
}

}  // namespace

void add_training(Table& table) {
  table.add(kTraining, "Adagrad", {.run = adagrad});
  table.add(kTraining, "Adam", {.run = adam});
  table.add(kTraining, "Momentum", {.run = momentum_of});
  table.add(kTraining, "Gradient", {.run = gradient_of});
}

}  // namespace concord::onnx
