// Operators with values stored in bf16 beside the same operators in fp32, where the processor has bf16 units.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "../../cpu/bf16_simd.hpp"
#include "../../cpu/layout.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/softmax.hpp"
#include "ops/op_test.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

bool has_units() {
  const std::vector<std::string>& known = cpu_device()->info().precisions;
  const bool has_them = std::ranges::find(known, "bf16") != known.end();
  if (!has_them) WARN("skipped: the processor has no bf16 units");
  return has_them;
}

/// The largest error of the results in parts of the largest number of each.
double largest_error(const std::vector<Tensor>& results, const std::vector<Tensor>& expected) {
  double most = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Array got = to_array(results[i]), right = to_array(expected[i]);
    double error = 0, largest = 0;
    for (std::size_t k = 0; k < got.values.size(); ++k) {
      error = std::max(error, std::abs(got.values[k] - right.values[k]));
      largest = std::max(largest, std::abs(right.values[k]));
    }
    UNSCOPED_INFO("result " << i << ": error " << error << ", largest " << largest);
    most = std::max(most, error == 0 ? 0 : error / largest);
  }
  return most;
}

/// Of an operator whose operands are offered in bf16, row-major or channels-last.
double deviation(const Operator& op, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> expected = run_kernel(op, inputs, false).outputs;
  double most = 0;
  for (const bool last : {false, true}) {
    most = std::max(most, largest_error(run_kernel(op, inputs, last, Precision::bf16).outputs, expected));
  }
  return most;
}

/// Whole numbers in [-4, 4], which bf16 has.
Tensor whole_numbers(const Shape& shape, std::uint32_t seed) {
  Tensor tensor(DType::f32, shape);
  const Array numbers = integers(shape, seed);
  std::ranges::transform(numbers.values, tensor.values<float>().begin(),
                         [](double x) { return static_cast<float>(x); });
  return tensor;
}

/// Results of a graph in bf16 beside those in fp32.
double graph_deviation(const std::vector<Input>& inputs, const Build& build) {
  return largest_error(run(cpu_device(), inputs, build, {.precision = Precision::bf16}),
                       run(cpu_device(), inputs, build));
}

std::vector<Value> with_gradients(const Value& result, const Value& seed, const std::vector<Value>& inputs) {
  std::vector<Value> results{result};
  const std::vector<Value> gradients = gradient(sum(result * seed), inputs);
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

}  // namespace

TEST_CASE("bf16 numbers are rounded to the nearest, ties to even", "[cpu][bf16]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> odd{infinity, -infinity, 0.0F, -0.0F, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 1e-3F, -3.0F};
  const std::vector<float> nearest{infinity, -infinity, 0.0F, -0.0F, 1.0F, 1 + 0x1p-6F, 0x1.06p-10F, -3.0F};
  std::vector<cpu::Bf16> stored(odd.size());
  std::vector<float> read(odd.size());
  cpu::bf16_store(odd.data(), stored.data(), static_cast<std::int64_t>(odd.size()));
  cpu::bf16_load(stored.data(), read.data(), static_cast<std::int64_t>(odd.size()));
  for (std::size_t i = 0; i < odd.size(); ++i) {
    CHECK(std::bit_cast<std::uint32_t>(read[i]) == std::bit_cast<std::uint32_t>(nearest[i]));
  }
  for (const std::uint32_t bits : {0x7fffffffU, 0xff800001U}) {
    CHECK(std::isnan(static_cast<float>(cpu::Bf16{cpu::bf16_bits(std::bit_cast<float>(bits))})));
  }
  std::vector<cpu::Bf16> signs{{0x3f80}, {0xbf80}, {0x8000}, {0xff80}, {0x7f80}, {0xffc0}, {0x7fc0}};
  cpu::bf16_relu(signs.data(), static_cast<std::int64_t>(signs.size()));
  const std::vector<std::uint16_t> expected{0x3f80, 0, 0, 0, 0x7f80, 0xffc0, 0x7fc0};
  for (std::size_t i = 0; i < signs.size(); ++i) CHECK(signs[i].bits == expected[i]);
}

TEST_CASE("layouts in bf16 keep their order in every shape", "[cpu][bf16]") {
  const TensorSpec image{DType::f32, Shape{2, 3, 4, 4}}, pixel{DType::f32, Shape{2, 8, 1, 1}};
  const Layout last = cpu::channels_last(image, DType::bf16), rows = cpu::row_major(image, DType::bf16);
  CHECK(last->bytes() == image.bytes() / 2);
  CHECK(cpu::is_channels_last(image, last));
  CHECK(cpu::stored_type(image, last) == DType::bf16);
  CHECK_FALSE(same_layout(last, cpu::channels_last(image)));
  CHECK(cpu::is_row_major(rows));
  CHECK_FALSE(cpu::is_row_major(last));
  CHECK(cpu::row_major(image, DType::f32) == nullptr);
  // An image of one pixel is row-major, so it may become a row.
  const Layout of_pixel = cpu::channels_last(pixel, DType::bf16);
  CHECK(cpu::is_row_major(of_pixel));
  const TensorSpec row{DType::f32, Shape{2, 8}};
  CHECK(same_layout(of_pixel->viewed_as(row), cpu::row_major(row, DType::bf16)));
  CHECK(last->viewed_as({DType::f32, Shape{2, 48}}) == nullptr);
}

TEST_CASE("bf16: moving values and sums of whole numbers are exact", "[cpu][bf16]") {
  if (!has_units()) return;
  const Shape images{3, 5, 9, 8};
  const Tensor x = whole_numbers(images, 1), y = whole_numbers(images, 2);
  CHECK(deviation(ops::Slice({1, 0, 2, 1}, {1, 2, 3, 1}, Shape{2, 3, 2, 5}), {x}) == 0);
  CHECK(deviation(ops::Pad({1, 0, 2, 0}, {1, 1, 2, 1}, Shape{5, 5, 20, 9}, 0.5F), {x}) == 0);
  CHECK(deviation(ops::Transpose({0, 2, 3, 1}), {x}) == 0);
  for (std::size_t axis = 0; axis < 4; ++axis) CHECK(deviation(ops::Concat(axis), {x, y}) == 0);
  CHECK(deviation(ops::Reduce(ops::ReduceKind::sum, {0, 2, 3}), {x}) == 0);
  CHECK(deviation(ops::Reduce(ops::ReduceKind::sum, {1}), {x}) == 0);
  CHECK(deviation(ops::Reduce(ops::ReduceKind::sum, {3}), {x}) == 0);
  for (const auto kind : {ops::ReduceKind::maximum, ops::ReduceKind::minimum, ops::ReduceKind::argmax}) {
    CHECK(deviation(ops::Reduce(kind, {1}), {x}) == 0);
  }
  const MaxPool2dOptions pool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  CHECK(deviation(ops::MaxPool(pool), {x}) == 0);
  const Scalar a = scalar::input(0), b = scalar::input(1);
  const Expression expression({a + b + scalar::coordinate(2), scalar::max(a, b)}, 2);
  const Tensor per_channel = whole_numbers(Shape{5, 1, 1}, 4);
  CHECK(deviation(ops::Pointwise(expression, {DType::f32, DType::f32}, "test"), {x, per_channel}) == 0);
  CHECK(deviation(ops::Pointwise(expression, {DType::f32, DType::i32}, "test"), {x, y}) == 0);
}

TEST_CASE("bf16: results are stored in bf16, gradients of weights and sums in fp32", "[cpu][bf16]") {
  if (!has_units()) return;
  const Tensor x = normal_tensor(Shape{2, 16, 9, 8}, 1), channels = normal_tensor(Shape{16}, 2);
  const Tensor weights = normal_tensor(Shape{32, 16, 3, 3}, 3), diff = normal_tensor(Shape{2, 32, 7, 6}, 4);
  const auto layouts_of = [](const Operator& op, const std::vector<Tensor>& inputs, bool last) {
    return run_kernel(op, inputs, last, Precision::bf16).output_layouts;
  };
  using Names = std::vector<std::string>;
  const ops::ConvOptions options;
  CHECK(layouts_of(ops::Conv(options), {x, weights}, false) == Names{"nhwc bf16"});
  CHECK(layouts_of(ops::ConvBackwardData(options, x.shape()), {diff, weights}, false) == Names{"nhwc bf16"});
  CHECK_THAT(layouts_of(ops::ConvBackwardWeights(options, weights.shape()), {x, diff}, true)[0], !contains("bf16"));
  CHECK(layouts_of(ops::BatchNorm(1e-5F), {x, channels, channels}, true) == Names{"nhwc bf16", "", ""});
  CHECK(layouts_of(ops::MaxPool(MaxPool2dOptions{}), {x}, true) == Names{"nhwc bf16", "nhwc"});
  CHECK(layouts_of(ops::Reduce(ops::ReduceKind::sum, {0, 2, 3}), {x}, true) == Names{""});
  const Expression relu({scalar::max(scalar::input(0), 0.0F)}, 1);
  CHECK(layouts_of(ops::Pointwise(relu, {DType::f32}, "relu"), {x}, true) == Names{"nhwc bf16"});
  CHECK(layouts_of(ops::Pointwise(relu, {DType::f32}, "relu"), {x}, false) == Names{"row-major bf16"});
  const Tensor rows = normal_tensor(Shape{200, 128}, 5), matrix = normal_tensor(Shape{128, 128}, 6);
  CHECK(layouts_of(ops::Matmul(false, true), {rows, matrix}, false) == Names{"row-major bf16"});
  CHECK(layouts_of(ops::Matmul(true, false), {rows, rows}, false) == Names{""});
}

TEST_CASE("bf16: convolutions and their gradients", "[cpu][bf16]") {
  if (!has_units()) return;
  struct Geometry {
    Shape src, weights;
    Conv2dOptions options;
  };
  for (const Geometry& g :
       {Geometry{{4, 64, 14, 14}, {96, 64, 3, 3}, {.padding = {1, 1}}},
        Geometry{{3, 16, 29, 30}, {24, 16, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
        Geometry{{3, 20, 28, 28}, {40, 20, 1, 1}, {.stride = {2, 2}}},
        Geometry{{2, 40, 20, 20}, {36, 40, 5, 5}, {.padding = {4, 4}, .dilation = {2, 2}}},
        Geometry{{2, 3, 65, 70}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
        Geometry{{2, 24, 11, 14}, {24, 1, 3, 3}, {.padding = {1, 1}, .groups = 24}},
        Geometry{{2, 24, 11, 14}, {48, 6, 3, 3}, {.stride = {2, 2}, .groups = 4}},
        Geometry{{3, 48, 18, 18}, {64, 48, 1, 7}, {.stride = {2, 2}, .padding = {0, 3}}},
        Geometry{{3, 37, 29, 30}, {37, 1, 5, 5}, {.padding = {6, 6}, .dilation = {3, 3}, .groups = 37}},
        Geometry{{2, 1, 8, 8}, {1, 1, 3, 3}, {}}}) {
    INFO(g.src.str() << " by " << g.weights.str());
    const Shape channels{g.weights[0], 1, 1};
    Graph shapes;
    const Shape dst =
        conv2d(shapes.input("src", {DType::f32, g.src}), shapes.input("weights", {DType::f32, g.weights}), g.options)
            .shape();
    const std::vector<Input> inputs{
        {normal(g.src, 1)}, {normal(g.weights, 2, 0.05)}, {normal(channels, 3)}, {normal(dst, 4)}};
    CHECK(graph_deviation(inputs, [&](const std::vector<Value>& x) {
            const Value y = conv2d(x[0], x[1], g.options) + x[2];
            return with_gradients(y * y, x[3], {x[0], x[1], x[2]});
          }) <= 0.03);
  }
  const std::vector<Input> signal{{normal({3, 16, 40}, 1)}, {normal({24, 16, 5}, 2, 0.1)}, {normal({3, 24, 36}, 3)}};
  CHECK(graph_deviation(signal, [](const std::vector<Value>& x) {
          return with_gradients(conv1d(x[0], x[1]), x[2], {x[0], x[1]});
        }) <= 0.03);
}

TEST_CASE("bf16: products in every order, their epilogues and gradients", "[cpu][bf16]") {
  if (!has_units()) return;
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      INFO(transposes_a << transposes_b);
      const Shape a = transposes_a ? Shape{130, 200} : Shape{200, 130};
      const Shape b = transposes_b ? Shape{150, 130} : Shape{130, 150};
      const std::vector<Input> inputs{{normal(a, 1)}, {normal(b, 2, 0.1)}, {normal({150}, 3)}, {normal({200, 150}, 4)}};
      CHECK(graph_deviation(inputs, [&](const std::vector<Value>& x) {
              const Value y = matmul(x[0], x[1], transposes_a, transposes_b) + x[2] + x[3];
              return with_gradients(y * y, x[3], {x[0], x[1], x[2]});
            }) <= 0.03);
    }
  }
  // Of batches, with a matrix each or one for all.
  for (const Shape& right : {Shape{6, 72, 80}, Shape{72, 80}}) {
    const std::vector<Input> inputs{{normal({6, 96, 72}, 1)}, {normal(right, 2, 0.1)}, {normal({6, 96, 80}, 3)}};
    CHECK(graph_deviation(inputs, [](const std::vector<Value>& x) {
            return with_gradients(matmul(x[0], x[1]), x[2], {x[0], x[1]});
          }) <= 0.03);
  }
}

TEST_CASE("bf16: batch normalisation, pooling and their gradients", "[cpu][bf16]") {
  if (!has_units()) return;
  for (const Shape& shape : {Shape{2, 24, 5, 7}, Shape{3, 136, 40, 33}, Shape{4, 3, 9, 9}}) {
    INFO(shape.str());
    const Shape channels{shape[1]};
    const Tensor x = normal_tensor(shape, 1), diff = normal_tensor(shape, 2), scale = normal_tensor(channels, 3);
    CHECK(deviation(ops::BatchNorm(1e-5F), {x, scale, scale}) <= 0.02);
    const std::vector<Tensor> forward = run_kernel(ops::BatchNorm(1e-5F), {x, scale, scale}, false).outputs;
    CHECK(deviation(ops::BatchNormBackward(1e-5F), {x, diff, scale, forward[1], forward[2]}) <= 0.02);
  }
  const Shape images{3, 20, 9, 8};
  const Tensor x = normal_tensor(images, 1);
  for (const MaxPool2dOptions& options : {MaxPool2dOptions{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
                                          MaxPool2dOptions{.kernel = {1, 2}, .stride = {1, 2}}}) {
    const ops::PoolOptions pool(options);
    const std::vector<Tensor> pooled = run_kernel(ops::MaxPool(pool), {x}, false).outputs;
    const Tensor diff = normal_tensor(pooled[0].shape(), 2);
    CHECK(deviation(ops::MaxPoolBackward(pool, images), {diff, pooled[1]}) <= 0.01);
    CHECK(deviation(ops::AvgPool(pool), {x}) <= 0.01);
    CHECK(deviation(ops::AvgPoolBackward(pool, images), {diff}) <= 0.01);
  }
  CHECK(deviation(ops::Softmax(1, false), {x}) <= 0.02);
}

TEST_CASE("bf16: normalisation of rows and its gradient", "[cpu][bf16]") {
  if (!has_units()) return;
  for (const std::int64_t length : {8, 200, 1544}) {
    for (const bool centred : {true, false}) {
      const Shape shape{3, 7, length};
      const Tensor x = normal_tensor(shape, 1), diff = normal_tensor(shape, 2);
      const ops::RowNorm op(2, centred, 1e-5F);
      CHECK(deviation(op, {x}) <= 0.02);
      const std::vector<Tensor> forward = run_kernel(op, {x}, false).outputs;
      CHECK(deviation(ops::RowNormBackward(2, centred), {diff, forward[0], forward[1]}) <= 0.02);
    }
  }
}

TEST_CASE("bf16: recurrent layers and their gradients", "[cpu][bf16]") {
  if (!has_units()) return;
  const std::int64_t steps = 5, batch = 24, hidden = 128;
  for (const std::int64_t gates : {4, 3}) {
    const Shape gates_x{steps, batch, gates * hidden}, weights{gates * hidden, hidden}, state{batch, hidden};
    const std::vector<Input> inputs{
        {normal(gates_x, 1)}, {normal(weights, 2, 0.1)},           {normal(state, 3)},
        {normal(state, 4)},   {normal({steps, batch, hidden}, 5)}, {normal({gates * hidden}, 6)}};
    CHECK(graph_deviation(inputs, [&](const std::vector<Value>& x) {
            const bool is_lstm = gates == 4;
            const RecurrentOperands operands{.gates_x = x[0],
                                             .weights = x[1],
                                             .h0 = x[2],
                                             .c0 = is_lstm ? x[3] : Value{},
                                             .bias = is_lstm ? Value{} : x[5]};
            const Value y = recurrent(is_lstm ? ops::RecurrentCell::lstm : ops::RecurrentCell::gru, operands).y;
            return with_gradients(y, x[4], {x[0], x[1], x[2]});
          }) <= 0.03);
  }
}

TEST_CASE("bf16: an update does not round the weights", "[cpu][bf16]") {
  if (!has_units()) return;
  // Gradients that are stored in 16 bits: results of products, which an epilogue may join with the weights, too.
  const Shape shape{200, 128};
  const Tensor x = normal_tensor(Shape{200, 64}, 1), y = normal_tensor(Shape{64, 128}, 2);
  const std::vector<Tensor> product = run_kernel(ops::Matmul(false, false), {x, y}, false).outputs;
  for (const float rate : {1e-4F, -1e-4F}) {
    Graph graph;
    const auto variables = std::make_shared<Variables>(cpu_device(), 1);
    Tensor ones(DType::f32, shape);
    std::ranges::fill(ones.values<float>(), 1.0F);
    const Value weights =
        graph.variable(std::make_shared<Variable>(Variable{"weights", {DType::f32, shape}, {}, false, ones}));
    const Value gradient_of = matmul(graph.input("x", x.spec()), graph.input("y", y.spec()));
    const Value updated = rate > 0 ? weights - rate * gradient_of : weights + -rate * gradient_of;
    graph.assign(weights, updated);
    Program step = compile(graph, sum(gradient_of, {0}), variables, {.precision = Precision::bf16});
    step.write("x", x);
    step.write("y", y);
    step.run();
    const Tensor got = variables->read("weights");
    for (std::size_t i = 0; i < 100; ++i) {
      const float change = -std::abs(rate) * product[0].values<float>()[i] * (rate > 0 ? 1.0F : -1.0F);
      CHECK(std::abs(got.values<float>()[i] - (1 + change)) < 5e-5F);
    }
  }
}

TEST_CASE("bf16: the same bits in each run", "[cpu][bf16]") {
  const std::vector<Input> inputs{{normal({8, 16, 17, 18}, 1)}, {normal({32, 16, 3, 3}, 2, 0.1)}, {normal({32}, 3)}};
  const Build build = [](const std::vector<Value>& x) {
    const Value y = batch_norm(conv2d(x[0], x[1], {.padding = {1, 1}}), x[2], x[2]).dst;
    return with_gradients(relu(y), y, {x[0], x[1], x[2]});
  };
  const CompileOptions options{.precision = Precision::bf16};
  const std::vector<Tensor> first = run(cpu_device(), inputs, build, options);
  const std::vector<Tensor> again = run(cpu_device(), inputs, build, options);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(difference(first[i], again[i]).empty());
}

}  // namespace concord::test
