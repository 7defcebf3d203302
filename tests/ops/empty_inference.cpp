// Inference of tensors without elements, which every operator answers: with the shape of the result, sums of 0 and
// products of 1. Gradients of a batch without samples, and means and largest values of nothing, are refused before
// anything runs.
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/grid_sample.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/softmax.hpp"
#include "ops/empty_form.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

/// `form` without gradients, on every device: the results, which are read.
std::vector<Tensor> answered(const DevicePtr& device, const EmptyForm& form) {
  Graph graph;
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < form.inputs.size(); ++i) {
    inputs.push_back(graph.input("x" + std::to_string(i), form.inputs[i]));
  }
  return read_results(device, form, graph, form.build(inputs));
}

TEST_CASE("inference answers an empty batch and an empty length", "[ops][empty]") {
  const DebugOption filled("fill_memory", "1");
  using V = const std::vector<Value>&;
  const auto ones = [](Value x, Shape shape) { return full(x.graph(), std::move(shape), 1); };
  struct Answered {
    EmptyForm form;
    Shape expected;
  };
  const std::vector<Answered> all{
      {{"conv1d", {f32({0, 3, 9}), f32({4, 3, 3})}, [](V x) { return std::vector{relu(conv1d(x[0], x[1]))}; }},
       {0, 4, 7}},
      {{"conv2d", {f32({0, 3, 5, 5}), f32({4, 3, 3, 3})}, [](V x) { return std::vector{relu(conv2d(x[0], x[1]))}; }},
       {0, 4, 3, 3}},
      {{"conv_transpose2d",
        {f32({0, 3, 5, 5}), f32({3, 4, 2, 2})},
        [](V x) { return std::vector{conv_transpose2d(x[0], x[1], {})}; }},
       {0, 4, 6, 6}},
      {{"max_pool2d", {f32({0, 3, 4, 4})}, [](V x) { return std::vector{max_pool2d(x[0], {}) + 1}; }}, {0, 3, 2, 2}},
      {{"avg_pool2d", {f32({0, 3, 4, 4})}, [](V x) { return std::vector{avg_pool2d(x[0], {})}; }}, {0, 3, 2, 2}},
      {{"softmax", {f32({0, 4})}, [](V x) { return std::vector{softmax(x[0])}; }}, {0, 4}},
      {{"softmax of no classes", {f32({3, 0})}, [](V x) { return std::vector{log_softmax(x[0])}; }}, {3, 0}},
      {{"row_norm", {f32({0, 5, 4})}, [](V x) { return std::vector{row_norm(x[0], -1).dst}; }}, {0, 5, 4}},
      {{"row_norm of no length", {f32({2, 0, 4})}, [](V x) { return std::vector{row_norm_rms(x[0], -1).dst}; }},
       {2, 0, 4}},
      {{"interpolate",
        {f32({0, 3, 4, 4})},
        [](V x) {
          return std::vector{interpolate(x[0], {.size = {3, 5}, .mode = Interpolation::linear})};
        }},
       {0, 3, 3, 5}},
      {{"flip of nothing", {f32({2, 0})}, [](V x) { return std::vector{flip(x[0], {1})}; }}, {2, 0}},
      {{"recurrent",
        {f32({3, 0, 8}), f32({8, 2}), f32({0, 2}), f32({0, 2})},
        [](V x) {
          return std::vector{recurrent(ops::RecurrentCell::lstm, {x[0], x[1], x[2], x[3]}).y};
        }},
       {3, 0, 2}},
      {{"attention of no samples", {f32({0, 2, 3, 4})}, [](V x) { return std::vector{attention(x[0], x[0], x[0])}; }},
       {0, 2, 3, 4}},
      {{"attention of no tokens", {f32({2, 2, 0, 4})}, [](V x) { return std::vector{attention(x[0], x[0], x[0])}; }},
       {2, 2, 0, 4}},
      {{"matmul of no rows", {f32({0, 3}), f32({3, 2})}, [](V x) { return std::vector{matmul(x[0], x[1])}; }}, {0, 2}},
      {{"grid_sample",
        {f32({0, 3, 4, 4}), f32({0, 2, 2, 2})},
        [](V x) { return std::vector{grid_sample(x[0], x[1])}; }},
       {0, 3, 2, 2}},
      {{"a scaled normalisation",
        {f32({0, 3})},
        [&](V x) {
          return std::vector{gelu(matmul(row_norm(x[0], 1).dst, ones(x[0], {3, 5})) + ones(x[0], {5}))};
        }},
       {0, 5}},
  };
  for (const DevicePtr& device : devices()) {
    for (const Answered& one : all) {
      INFO(one.form.name << " on " << device->info().id);
      CHECK(answered(device, one.form).front().shape() == one.expected);
    }
  }
}

TEST_CASE("what sums over nothing is 0, and what multiplies over nothing is 1", "[ops][empty]") {
  const DebugOption filled("fill_memory", "1");
  using V = const std::vector<Value>&;
  const std::vector<std::pair<EmptyForm, std::vector<double>>> all{
      {{"matmul", {f32({2, 0}), f32({0, 3})}, [](V x) { return std::vector{matmul(x[0], x[1]) + 2}; }},
       std::vector<double>(6, 2)},
      {{"matmul in batches", {f32({2, 1, 0}), f32({2, 0, 2})}, [](V x) { return std::vector{matmul(x[0], x[1])}; }},
       std::vector<double>(4, 0)},
      {{"prod", {f32({2, 0})}, [](V x) { return std::vector{prod(x[0], {1})}; }}, {1, 1}},
      {{"prod of all", {f32({0})}, [](V x) { return std::vector{prod(x[0])}; }}, {1}},
      {{"norm", {f32({0, 2})}, [](V x) { return std::vector{norm(x[0], {0})}; }}, {0, 0}},
      {{"pad",
        {f32({0, 2})},
        [](V x) {
          return std::vector{pad(x[0], {1, 0}, {0, 0}, 3)};
        }},
       {3, 3}},
  };
  for (const DevicePtr& device : devices()) {
    for (const auto& [form, expected] : all) {
      INFO(form.name << " on " << device->info().id);
      CHECK(to_array(answered(device, form).front()).values == expected);
    }
  }
}

TEST_CASE("no batch has no gradient, and nothing has no mean and no largest value", "[ops][empty]") {
  Graph graph;
  const Value image = graph.input("image", f32({0, 3, 4, 4})), w = graph.input("w", f32({2, 3, 3, 3}));
  const Value rows = graph.input("rows", f32({0, 4})), labels = graph.input("labels", i32({0}));
  CHECK_THROWS_AS(gradient(sum(conv2d(image, w)), {w}), ShapeError);
  CHECK_THROWS_AS(gradient(sum(max_pool2d(image, {})), {image}), ShapeError);
  CHECK_THROWS_AS(gradient(sum(avg_pool2d(image, {})), {image}), ShapeError);
  CHECK_THROWS_AS(gradient(sum(softmax(rows)), {rows}), ShapeError);
  CHECK_THROWS_AS(gradient(sum(row_norm(rows, 1).dst), {rows}), ShapeError);
  CHECK_THROWS_AS(loss::mse(rows, rows), ShapeError);
  CHECK_THROWS_AS(loss::cross_entropy(rows, labels), ShapeError);
  CHECK_THROWS_AS(mean(rows, {0}), ShapeError);
  CHECK_THROWS_AS(reduce_max(rows, {0}), ShapeError);
  CHECK_THROWS_AS(argmax(rows, 0), ShapeError);
}

}  // namespace
}  // namespace concord::test
