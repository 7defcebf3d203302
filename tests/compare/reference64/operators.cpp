// The float64 references: every device computes what they say, for each family in the forms it has.
#include "compare/float64_test.hpp"
#include "concord/ops/fused.hpp"

namespace concord::test {

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
        {"max_pool", "max_pool_backward"});
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
          return sum(x, {0, 2}) + reduce_max(x, {0, 2}) * reduce_min(x, {0, 2}) + prod(x, {0, 2});
        },
        {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"});
  check("whole numbers by formula, and such a table with indices outside",
        [](Operators& o) {
          const Value whole = cast(o.input({5}) * 9.0F, DType::i32);
          return cast(gather(whole, o.indices({4}, {0, -1, 7, 3})), DType::f32);
        },
        {"gather"});
  check("places",
        [](Operators& o) {
          return gather(o.input({4, 2}), argmax(o.input({3, 4, 5}), 1));
        },
        {"argmax", "gather"});
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
  check("attention with dropout",
        [](Operators& o) {
          const Value q = o.input({2, 2, 19, 4}), k = o.input({2, 2, 37, 4});
          return attention_reference(q, k, k, {.dropout = 0.4F});
        },
        {"random_attention"});
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
          {.retain = Retain::fused});
    INFO(device->info().id);
    if (device->info().id != "cpu")
      CHECK(std::ranges::any_of(fused, [](const std::string& op) { return op.starts_with("conv2d+"); }));
  }
}

}  // namespace concord::test
