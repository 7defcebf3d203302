// The float64 references: every device computes what they say, for each family in the forms it has.
#include <cmath>
#include <functional>
#include <set>

#include "concord/compare/extent.hpp"
#include "concord/compare/float64/evaluate.hpp"
#include "concord/compare/tolerance.hpp"
#include "concord/core/philox.hpp"
#include "concord/ops/fused.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

/// A graph whose f32 inputs are drawn from [-1, 1) and whose gradients by them are part of what is checked.
class Operators {
 public:
  Value input(Shape shape) {
    Value x = graph_.input("x" + std::to_string(inputs_.size()), {DType::f32, std::move(shape)});
    inputs_.push_back(x);
    return x;
  }
  Value indices(Shape shape, std::vector<std::int32_t> values) {
    Value x = graph_.input("i" + std::to_string(given_.size()), {DType::i32, shape});
    given_.emplace(x.name(), Tensor::of<std::int32_t>(std::move(shape), values));
    return x;
  }
  Graph& graph() { return graph_; }
  /// Runs every operator alone and hands it to `seen`.
  void run(const DevicePtr& device, Value result, const std::function<void(const ReplayedNode&)>& seen,
           const CompileOptions& options = {.keep_all = true}) {
    std::vector<Value> outputs{sum(result * input(result.shape()))};
    const std::vector<Value> gradients = gradient(outputs[0], inputs_);
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
    Program program = compile(graph_, outputs, std::make_shared<Variables>(device, 7), options);
    PhiloxSequence words(Philox(5, 0));
    for (const Value& input : inputs_) {
      Tensor value(input.spec());
      for (float& x : value.values<float>()) x = static_cast<float>(words.next() >> 8) * 0x1p-23F - 1;
      program.write(input.name(), value);
    }
    for (const auto& [name, value] : given_) program.write(name, value);
    program.replay([](const std::string&) { return nullptr; }, seen);
  }

 private:
  Graph graph_;
  std::vector<Value> inputs_;
  std::map<std::string, Tensor> given_;
};

using Build = std::function<Value(Operators&)>;

/// Checks all operators that `build` and its gradient are made of; `expected` have to be among those with a reference.
void check(const std::string& what, const Build& build, const std::vector<std::string>& expected) {
  for (const DevicePtr& device : devices()) {
    INFO(what << " on " << device->info().id);
    Operators operators;
    std::set<std::string> referenced;
    operators.run(device, build(operators), [&](const ReplayedNode& node) {
      const float64::Results exact = float64::evaluate(node);
      if (!exact) return;
      referenced.emplace(node.entry.op);
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        if ((*exact)[k].empty()) continue;
        INFO(node.entry.node << " output " << k << ": " << node.entry.op << ", " << node.entry.shapes);
        REQUIRE((*exact)[k].size() == static_cast<std::size_t>(node.results[k].elements()));
        CHECK(largest_difference(node.results[k], (*exact)[k]) <= tolerance_of(node, k));
      }
    });
    for (const std::string& name : expected) {
      INFO(name);
      CHECK(referenced.contains(name));
    }
  }
}

Value recurrent_layer(Operators& o, ops::RecurrentCell cell, bool reverse) {
  const std::int64_t steps = 3, batch = 2, hidden = 5, gates = ops::gates_of(cell);
  RecurrentOperands operands{o.input({steps, batch, gates * hidden}), o.input({gates * hidden, hidden}),
                             o.input({batch, hidden})};
  if (cell == ops::RecurrentCell::lstm) operands.c0 = o.input({batch, hidden});
  if (cell == ops::RecurrentCell::gru) operands.bias = o.input({3 * hidden});
  const RecurrentResult result = recurrent(cell, operands, reverse);
  const Value states = sum(square(result.y)) + sum(result.hn);
  return cell == ops::RecurrentCell::lstm ? states + sum(square(result.cn)) : states;
}

}  // namespace

TEST_CASE("float64: convolutions with strides, padding, dilation and groups", "[compare]") {
  const std::vector<std::string> two{"conv2d", "conv2d_backward_data", "conv2d_backward_weights"};
  check(
      "padded",
      [](Operators& o) {
        return conv2d(o.input({2, 3, 6, 5}), o.input({4, 3, 3, 3}), {.padding = {1, 1}});
      },
      two);
  check(
      "strided, dilated, in groups",
      [](Operators& o) {
        return conv2d(
            o.input({2, 4, 9, 7}), o.input({6, 2, 3, 2}),
            {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}, .groups = 2, .padding_after = {{1, 0}}});
      },
      two);
  check("signals",
        [](Operators& o) {
          return conv1d(o.input({2, 3, 8}), o.input({4, 3, 3}), {.stride = {2}});
        },
        {"conv1d", "conv1d_backward_data", "conv1d_backward_weights"});
  check("volumes",
        [](Operators& o) {
          return conv3d(o.input({1, 2, 4, 5, 3}), o.input({3, 2, 2, 3, 2}), {.padding = {1, 0, 1}});
        },
        {"conv3d", "conv3d_backward_data", "conv3d_backward_weights"});
}

TEST_CASE("float64: matrix products of all forms", "[compare]") {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      check("matmul",
            [&](Operators& o) {
              return matmul(o.input(a ? Shape{2, 5, 3} : Shape{2, 3, 5}), o.input(b ? Shape{2, 4, 5} : Shape{2, 5, 4}),
                            a, b);
            },
            {"matmul"});
      check("one matrix for all",
            [&](Operators& o) {
              return matmul(o.input(a ? Shape{2, 5, 3} : Shape{2, 3, 5}), o.input(b ? Shape{4, 5} : Shape{5, 4}), a, b);
            },
            {"matmul"});
    }
  }
}

TEST_CASE("float64: pooling with padding, ceil mode and adaptive windows", "[compare]") {
  check("max",
        [](Operators& o) {
          return max_pool2d(o.input({2, 3, 7, 6}), {.kernel = {2, 3}});
        },
        {"max_pool", "max_pool_backward"});
  check("overlapping",
        [](Operators& o) {
          return max_pool2d(o.input({2, 3, 7, 6}),
                            {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true});
        },
        {"max_pool"});
  for (const bool padding : {false, true}) {
    check(
        "average",
        [&](Operators& o) {
          return avg_pool2d(
              o.input({2, 3, 7, 6}),
              {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = padding});
        },
        {"avg_pool", "avg_pool_backward"});
  }
  check("divisor",
        [](Operators& o) {
          return avg_pool1d(o.input({2, 3, 7}), {.kernel = {3}, .divisor_override = 2});
        },
        {"avg_pool"});
  check("adaptive",
        [](Operators& o) {
          const std::vector<std::int64_t> sizes{3, 4};
          const Value x = o.input({2, 2, 7, 5});
          return adaptive_avg_pool(x, sizes) + adaptive_max_pool(x, sizes);
        },
        {"avg_pool", "avg_pool_backward", "max_pool"});
}

TEST_CASE("float64: normalisations", "[compare]") {
  check("batch",
        [](Operators& o) {
          return batch_norm(o.input({3, 4, 5, 2}), o.input({4}), o.input({4})).dst;
        },
        {"batch_norm", "batch_norm_backward"});
  check("rows", [](Operators& o) { return row_norm(o.input({3, 4, 5}), 1).dst; }, {"row_norm", "row_norm_backward"});
  check("rms",
        [](Operators& o) {
          return row_norm_rms(o.input({3, 4, 5}), -1).dst;
        },
        {"row_norm_rms", "row_norm_rms_backward"});
}

TEST_CASE("float64: softmax and cross-entropy", "[compare]") {
  for (const int axis : {0, 1, 2}) {
    check("softmax", [&](Operators& o) { return softmax(o.input({3, 4, 5}), axis); }, {"softmax", "softmax_backward"});
    check("log",
          [&](Operators& o) {
            return log_softmax(o.input({3, 4, 5}), axis);
          },
          {"log_softmax", "log_softmax_backward"});
  }
  for (const float smoothing : {0.0F, 0.2F}) {
    check("classes",
          [&](Operators& o) {
            return cross_entropy_rows(o.input({3, 4}), o.indices({3}, {1, 3, 0}), smoothing);
          },
          {"cross_entropy", "cross_entropy_backward"});
    check("probabilities",
          [&](Operators& o) {
            return cross_entropy_rows(o.input({3, 4}), softmax(o.input({3, 4})), smoothing);
          },
          {"cross_entropy"});
  }
}

TEST_CASE("float64: reductions, copies, gathers and formulas", "[compare]") {
  check("reductions",
        [](Operators& o) {
          const Value x = o.input({3, 4, 5});
          return sum(x, {0, 2}) + reduce_max(x, {0, 2}) * reduce_min(x, {0, 2});
        },
        {"reduce_sum", "reduce_max", "reduce_min"});
  check("copies",
        [](Operators& o) {
          const Value x = o.input({3, 4, 5}), y = o.input({2, 3, 5});
          const Value turned = transpose(slice(x, 1, 1, 4, 2), {1, 0, 2});
          return pad(concat({turned, y}, 0), {1, 0, 2}, {0, 1, 0}, 0.5F);
        },
        {"transpose", "slice", "concat", "pad"});
  check("gather",
        [](Operators& o) {
          const Value rows = gather(o.input({4, 3}), o.indices({5}, {3, 0, 3, 2, 3}), 2);
          return scatter_add(rows, o.indices({5}, {1, 1, 7, 0, 1}), 3);
        },
        {"gather", "scatter_add"});
  check("formulas",
        [](Operators& o) {
          const Value x = o.input({3, 1, 5}), y = o.input({4, 1});
          return gelu(x) * silu(y) + softplus(x - y) / (exp(tanh(x)) + 1.0F) +
                 maximum(elu(x), y) * log(square(y) + 1.0F);
        },
        {"gelu", "silu", "softplus"});
  check("random",
        [](Operators& o) {
          return o.input({50}) * random_normal(o.graph(), Shape{50}, 1, 2) +
                 random_mask(o.graph(), Shape{50}, 0.4F, 2.5F, "mask");
        },
        {"random_normal", "random_bernoulli"});
}

TEST_CASE("float64: operators along an axis", "[compare]") {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      check("cumsum",
            [&](Operators& o) {
              return cumsum(o.input({3, 5, 2}), 1, {.exclusive = exclusive, .reverse = reverse});
            },
            {"cumsum"});
    }
  }
  for (const bool largest : {false, true}) {
    check("top_k", [&](Operators& o) { return top_k(o.input({2, 7, 3}), 3, 1, largest).values; }, {"top_k"});
  }
  check("by index",
        [](Operators& o) {
          const Value index = o.indices({2, 4}, {3, 0, 2, 2, 1, 1, 0, 3});
          return scatter_add_along(gather_along(o.input({2, 5}), index, 1), index, 1, 4);
        },
        {"gather_along", "scatter_add_along"});
  check("resampled",
        [](Operators& o) {
          const Value larger = interpolate(o.input({1, 2, 5, 4}), {.size = {7, 9}, .mode = Interpolation::cubic});
          return gaussian_blur(larger, 3, 0.8) +
                 interpolate(o.input({1, 2, 3, 3}), {.size = {7, 9}, .mode = Interpolation::linear});
        },
        {"resample"});
}

TEST_CASE("float64: attention with masks, lengths, shared keys and dropout", "[compare]") {
  const std::vector<std::string> all{"attention", "attention_backward_query", "attention_backward_key_value"};
  for (const ops::Causal causal : {ops::Causal::none, ops::Causal::first, ops::Causal::last}) {
    check(
        "causal",
        [&](Operators& o) {
          return attention(o.input({2, 4, 3, 8}), o.input({2, 2, 5, 8}), o.input({2, 2, 5, 8}),
                           {.lengths = o.indices({2}, {5, 4}), .causal = causal});
        },
        all);
  }
  check(
      "mask and dropout",
      [](Operators& o) {
        const Value mask =
            pointwise("mask", {full(o.graph(), Shape{1, 1, 1, 1}, 0)},
                      scalar::coordinate(0) * 0.3F - scalar::coordinate(1), DType::f32, Shape{1, 1, 3, 6});
        return attention(o.input({2, 2, 3, 8}), o.input({2, 2, 6, 8}), o.input({2, 2, 6, 8}),
                         {.mask = mask, .dropout = 0.3F, .scale = 0.7F});
      },
      all);
}

TEST_CASE("float64: attention with tokens before heads", "[compare]") {
  check("tokens first",
        [&](Operators& o) {
          return attention(o.input({2, 3, 4, 8}), o.input({2, 5, 2, 8}), o.input({2, 5, 2, 8}),
                           {.lengths = o.indices({2}, {5, 4}),
                            .causal = ops::Causal::last,
                            .layout = ops::HeadLayout::tokens_first,
                            .dropout = 0.3F});
        },
        {"attention", "attention_backward_query", "attention_backward_key_value"});
}

TEST_CASE("float64: operators with the formulas that are fused into them", "[compare]") {
  for (const DevicePtr& device : devices()) {
    Operators o;
    const Value x = o.input({2, 3, 6, 5}), weights = o.input({4, 3, 3, 3}), bias = o.input({4, 1, 1});
    const Value y = relu(conv2d(x, weights, {.padding = {1, 1}}) + bias);
    std::vector<std::string> fused;
    o.run(device, y,
          [&](const ReplayedNode& node) {
            if (dynamic_cast<const ops::Fused*>(node.op) == nullptr) return;
            fused.push_back(node.entry.op);
            const float64::Results exact = float64::evaluate(node);
            REQUIRE(exact);
            INFO(node.entry.op << " on " << device->info().id);
            CHECK(largest_difference(node.results[0], exact->front()) <= tolerance_of(node, 0));
            CHECK(largest_difference(node.results[0], float64::Values(exact->front().size())) > 0.1);
          },
          {.keep_fused = true});
    INFO(device->info().id);
    if (device->info().id != "cpu")
      CHECK(std::ranges::any_of(fused, [](const std::string& op) { return op.starts_with("conv2d+"); }));
  }
}

TEST_CASE("float64: recurrent layers in both directions", "[compare]") {
  using ops::RecurrentCell;
  for (const RecurrentCell cell :
       {RecurrentCell::rnn_tanh, RecurrentCell::rnn_relu, RecurrentCell::lstm, RecurrentCell::gru}) {
    for (const bool reverse : {false, true}) {
      check(std::string(name_of(cell)), [&](Operators& o) { return recurrent_layer(o, cell, reverse); },
            {"recurrent", "recurrent_backward"});
    }
  }
}

}  // namespace concord::test
