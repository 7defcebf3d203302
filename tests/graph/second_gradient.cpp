// Gradients of gradients: operators that lack one say what to write instead, and what they say has one.
#include <cmath>
#include <functional>
#include <numeric>

#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using Function = std::function<Value(Value)>;

/// Σ of the squares of d(Σ f(x)²)/dx: its gradient is one of a gradient.
Value penalty(Value x, const Function& f) {
  const Value first = gradient(sum(square(f(x))), {x}).front();
  return sum(square(first));
}

struct Lacking {
  const char* name;
  Shape shape;
  Function f;
  const char* advice;  // a part of it
};

std::vector<Lacking> lacking() {
  return {
      {"attention", {1, 2, 3, 4}, [](Value x) { return attention(x, x, x); }, "matmul(e / sum(e, {-1}, true), v)"},
      {"rnn",
       {3, 2, 4},
       [](Value x) {
         return nn::RNN{4, 3}(x);
       },
       "step by step"},
      {"lstm",
       {3, 2, 4},
       [](Value x) {
         return nn::LSTM{4, 3}(x);
       },
       "nn::LSTMCell"},
      {"gru",
       {3, 2, 4},
       [](Value x) {
         return nn::GRU{4, 3}(x);
       },
       "nn::GRUCell"},
  };
}

/// The composition that messages name.
Value attention_composed(Value x) {
  const Value scores = matmul(x, x, false, true) * 0.5F;
  const Value e = exp(scores - stop_gradient(reduce_max(scores, {-1}, true)));
  return matmul(e / sum(e, {-1}, true), x);
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

}  // namespace

TEST_CASE("an operator without a gradient of its gradient says what to write instead", "[ops][second_gradient]") {
  for (const Lacking& one : lacking()) {
    INFO(one.name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, one.shape});
    const Value loss = penalty(x, one.f);
    const std::string message = message_of<NotSupported>([&] { static_cast<void>(gradient(loss, {x})); });
    INFO(message);
    CHECK_THAT(message, contains("Meanwhile") && contains(one.advice));
  }
}

TEST_CASE("what is to be written instead has gradients of gradients", "[ops][second_gradient]") {
  struct Composed {
    const char* name;
    Shape shape;
    Function f, like;  // `like` is the operator that it stands for
  };
  const std::vector<Composed> all{
      {"attention", {1, 2, 3, 4}, attention_composed, [](Value x) { return attention(x, x, x); }},
  };
  for (const DevicePtr& device : devices()) {
    for (const Composed& one : all) {
      INFO(device->info().id << ", " << one.name);
      Graph graph;
      const Value x = graph.input("x", {DType::f32, one.shape});
      const Value same = one.f(x) - one.like(x);
      const Value loss = penalty(x, one.f), slope = gradient(loss, {x}).front();
      Program program = compile(graph, {loss, slope, same}, std::make_shared<Variables>(device, 1));
      std::vector<float> at(static_cast<std::size_t>(one.shape.elements()));
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::sin(1.7F * static_cast<float>(i) + 0.3F);
      const auto loss_at = [&](const std::vector<float>& point) {
        program.write("x", Tensor::of(one.shape, point));
        program.run();
        return static_cast<double>(program.read(loss).values<float>()[0]);
      };
      static_cast<void>(loss_at(at));
      for (const float difference : values_of(program.read(same))) CHECK(std::abs(difference) < 1e-4F);
      const std::vector<float> slopes = values_of(program.read(slope));
      const double largest = std::accumulate(slopes.begin(), slopes.end(), 1.0, [](double m, float v) {
        return std::max(m, std::abs(static_cast<double>(v)));
      });
      for (std::size_t i = 0; i < at.size(); ++i) {
        constexpr float kStep = 4e-3F;
        std::vector<float> above = at, below = at;
        above[i] += kStep;
        below[i] -= kStep;
        const double expected =
            (loss_at(above) - loss_at(below)) / (static_cast<double>(above[i]) - static_cast<double>(below[i]));
        CHECK(std::abs(static_cast<double>(slopes[i]) - expected) < 2e-2 * largest);
      }
    }
  }
}
