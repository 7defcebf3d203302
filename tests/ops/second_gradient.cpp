// Gradients of gradients against recorded PyTorch: of P = Σ (d/dx Σ f(x)·w)², as a gradient penalty has them.
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "concord/ops/composed_gradient.hpp"
#include "concord/ops/elementary.hpp"
#include "goldens.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// What the functions of tests/goldens/second_gradient.py take besides x and y.
struct Given {
  Value labels, signs, bits, p, target;
};

using Built = std::function<Value(const std::vector<Value>& in, const Given& given)>;

Value rows_of(Value y, std::int64_t row) { return reshape(slice(y, 0, row, row + 1), {-1}); }

const std::map<std::string, Built>& functions() {
  static const std::map<std::string, Built> all{
      {"softmax", [](auto& in, auto&) { return softmax(in[0], 1); }},
      {"softmax along the first axis", [](auto& in, auto&) { return softmax(in[0], 0); }},
      {"log_softmax", [](auto& in, auto&) { return log_softmax(in[0], 1); }},
      {"layer_norm", [](auto& in, auto&) { return row_norm(in[0], 1).dst; }},
      {"rms_norm", [](auto& in, auto&) { return row_norm_rms(in[0], 1).dst; }},
      {"group_norm",
       [](auto& in, auto&) {
         return reshape(row_norm(reshape(in[0], {2, 2, 12}), 2).dst, {2, 4, 3, 2});
       }},
      {"instance_norm", [](auto& in, auto&) { return row_norm(in[0], 2).dst; }},
      {"max_pool2d",
       [](auto& in, auto&) {
         return square(max_pool2d(in[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}));
       }},
      {"max_pool2d squared",
       [](auto& in, auto&) {
         return max_pool2d(in[0] * in[0], {.kernel = {3, 3}, .stride = {1, 1}});
       }},
      {"avg_pool2d",
       [](auto& in, auto&) {
         return avg_pool2d(in[0] * in[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
       }},
      {"adaptive_avg_pool1d",
       [](auto& in, auto&) { return adaptive_avg_pool(in[0] * in[0], std::vector<std::int64_t>{3}); }},
      {"prod", [](auto& in, auto&) { return prod(in[0], {1}); }},
      {"cross_entropy", [](auto& in, auto& g) { return loss::cross_entropy(in[0], g.labels); }},
      {"cross_entropy with smoothing",
       [](auto& in, auto& g) { return loss::CrossEntropy{.label_smoothing = 0.2F}(in[0], g.labels); }},
      {"cross_entropy of probabilities", [](auto& in, auto& g) { return loss::cross_entropy(in[0], g.p); }},
      {"cross_entropy squared", [](auto& in, auto& g) { return square(cross_entropy_rows(in[0], g.labels)); }},
      {"mse", [](auto& in, auto& g) { return loss::mse(in[0], g.target); }},
      {"huber", [](auto& in, auto& g) { return loss::huber(in[0], g.target); }},
      {"smooth_l1", [](auto& in, auto& g) { return loss::smooth_l1(in[0], g.target); }},
      {"bce_with_logits", [](auto& in, auto& g) { return loss::bce_with_logits(in[0], g.bits); }},
      {"kl_divergence", [](auto& in, auto& g) { return loss::kl_divergence(log_softmax(in[0], 1), g.p); }},
      {"poisson_nll", [](auto& in, auto& g) { return loss::poisson_nll(in[0], g.bits); }},
      {"focal", [](auto& in, auto& g) { return loss::focal(in[0], g.bits); }},
      {"dice", [](auto& in, auto& g) { return loss::dice(sigmoid(in[0]), g.bits); }},
      {"multi_margin", [](auto& in, auto& g) { return loss::MultiMargin{.p = 2}(in[0], g.labels); }},
      {"cosine_embedding", [](auto& in, auto& g) { return loss::cosine_embedding(in[0], g.target, g.signs); }},
      {"triplet_margin", [](auto& in, auto& g) { return loss::triplet_margin(in[0], g.target, g.p); }},
      {"linear and tanh", [](auto& in, auto& g) { return tanh(matmul(in[0], g.target, false, true)); }},
      {"batch_norm", [](auto& in, auto&) { return batch_norm(in[0], rows_of(in[1], 0), rows_of(in[1], 1)).dst; }},
      {"scaled layer_norm",
       [](auto& in, auto&) { return row_norm(in[0], 1).dst * rows_of(in[1], 0) + rows_of(in[1], 1); }},
      {"cross_entropy of both", [](auto& in, auto&) { return loss::cross_entropy(in[0], softmax(in[1], 1)); }},
  };
  return all;
}

Value weights_of(Value f) {
  const std::int64_t count = f.shape().elements();
  return reshape(sin(cast(iota(f.graph(), count), DType::f32) * 1.3F + 0.5F), f.shape());
}

TEST_CASE("gradient penalties are those of PyTorch", "[ops][second_gradient]") {
  const nlohmann::json file = golden("second_gradient.json");
  REQUIRE(file["cases"].size() == functions().size());
  for (const DevicePtr& device : devices()) {
    Graph graph;
    const auto given = [&](const std::string& name, const Tensor& value) { return graph.input(name, value.spec()); };
    const Tensor labels = Tensor::of<std::int32_t>({3}, {2, 0, 3}), signs = Tensor::of<float>({3}, {1, -1, 1});
    const Tensor bits = Tensor::of<float>({3, 4}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    const Tensor p = tensor_of({3, 4}, file["p"]), target = tensor_of({3, 4}, file["y"]);
    const Given all{given("labels", labels), given("signs", signs), given("bits", bits), given("p", p),
                    given("target", target)};
    std::vector<Value> outputs;
    std::map<std::string, Tensor> written;
    for (const nlohmann::json& row : file["cases"]) {
      const auto name = row["name"].get<std::string>();
      std::vector<Value> in;
      for (const std::string operand : {"x", "y"}) {
        if (!row.contains(operand)) continue;
        const std::string shape = operand == "x" ? "shape" : "y_shape";
        const Tensor value = tensor_of(Shape(row[shape].get<std::vector<std::int64_t>>()), row[operand]);
        in.push_back(given(name + " " + operand, value));
        written.emplace(in.back().name(), value);
      }
      const Value f = functions().at(name)(in, all);
      const Value first = gradient(sum(f * weights_of(f)), std::vector{in[0]}).front();
      outputs.push_back(sum(square(first)));
      for (const Value& slope : gradient(outputs.back(), in)) outputs.push_back(slope);
    }
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 1));
    program.write("labels", labels);
    program.write("signs", signs);
    program.write("bits", bits);
    program.write("p", p);
    program.write("target", target);
    for (const auto& [name, value] : written) program.write(name, value);
    program.run();
    std::size_t next = 0;
    for (const nlohmann::json& row : file["cases"]) {
      INFO(row["name"].get<std::string>() << " on " << device->info().id);
      CHECK(program.read(outputs[next++]).values<float>()[0] == Approx(row["penalty"].get<double>()).epsilon(2e-5));
      CHECK(difference(program.read(outputs[next++]), row["by_x"]) < 1e-4);
      if (row.contains("by_y")) CHECK(difference(program.read(outputs[next++]), row["by_y"]) < 1e-4);
    }
  }
}

TEST_CASE("a gradient by what weighs a cross-entropy is right at a weight of 0", "[ops][second_gradient]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array logits({3, 2}, {1, 3, 2, -1, nan, nan}), weights({3}, {0, 0.5, 0});
  const Array shares({3, 2}, {0, 1, 0, 1, 0, 1}), directions({3, 2}, {1, 2, -3, 0.5, 1, 1});
  // Σ direction·(p - share) of the softmax p, and Σ direction·(-log p); the row of NaN is one that is left out.
  const auto p = [&](std::int64_t n, std::int64_t c) {
    return 1 / (1 + std::exp(logits.at({n, 1 - c}) - logits.at({n, c})));
  };
  double by_logits[3] = {}, by_shares[3] = {};
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t c = 0; c < 2; ++c) {
      by_logits[n] += directions.at({n, c}) * (p(n, c) - shares.at({n, c}));
      by_shares[n] -= directions.at({n, c}) * std::log(p(n, c));
    }
  }
  for (const DevicePtr& device : devices()) {
    for (const bool has_labels : {true, false}) {
      INFO(device->info().id << (has_labels ? ", labels" : ", probabilities"));
      const Input target = has_labels ? Input{Array({3}, {1, 1, 1}), DType::i32} : Input{shares};
      const std::vector<Tensor> results =
          run(device, {{logits}, target, {weights}, {directions}}, [&](const std::vector<Value>& in) {
            const Value loss = sum(cross_entropy_rows(in[0], in[1]) * in[2]);
            std::vector<Value> asked{in[0]};
            if (!has_labels) asked.push_back(in[1]);
            std::vector<Value> slopes = gradient(loss, asked);
            for (std::size_t k = 0; k < asked.size(); ++k) {
              slopes.push_back(gradient(sum(slopes[k] * in[3]), std::vector{in[2]}).front());
            }
            return slopes;
          });
      const std::size_t asked = results.size() / 2;
      for (std::size_t k = 0; k < asked; ++k) {
        const std::span<const float> first = results[k].values<float>(), second = results[asked + k].values<float>();
        for (const std::size_t zero : {0, 1, 4, 5}) CHECK(first[zero] == 0);
        for (std::size_t n = 0; n < 3; ++n) {
          CHECK(second[n] == Approx((k == 0 ? by_logits : by_shares)[n]).margin(1e-6));
        }
      }
    }
  }
}

TEST_CASE("third gradients pass through composed ones", "[ops][second_gradient]") {
  // Of x = (a, b) the softmax's first part is σ(a - b), whose third derivative is known.
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const std::vector<Tensor> results = run(device, {{Array({1, 2}, {0.75, 0.125})}}, [](const std::vector<Value>& in) {
      const auto slope = [&](Value y) { return slice(gradient(sum(y), std::vector{in[0]}).front(), 1, 0, 1); };
      const Value first = slope(slice(softmax(in[0], 1), 1, 0, 1)), second = slope(first);
      return std::vector{first, second, slope(second)};
    });
    const double s = 1 / (1 + std::exp(-0.625)), d = s * (1 - s);
    const double expected[] = {d, d * (1 - 2 * s), d * (1 - 6 * s + 6 * s * s)};
    for (std::size_t k = 0; k < 3; ++k) CHECK(results[k].values<float>()[0] == Approx(expected[k]).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace concord::test
