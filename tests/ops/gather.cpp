// Gather and scatter-add: rows by index, repeated and wrong indices, gradients.
#include "concord/ops/gather.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

std::int64_t row_size(const Array& table) { return table.shape.elements() / table.shape[0]; }

Array gathered(const Array& table, const Array& indices) {
  std::vector<std::int64_t> dims(indices.shape.dims().begin(), indices.shape.dims().end());
  dims.insert(dims.end(), table.shape.dims().begin() + 1, table.shape.dims().end());
  Array dst{Shape(dims)};
  const auto size = static_cast<std::size_t>(row_size(table));
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      dst.values[i * size + k] = table.values[static_cast<std::size_t>(indices.values[i]) * size + k];
    }
  }
  return dst;
}

Array scattered(const Array& src, const Array& indices, std::int64_t rows) {
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), src.shape.dims().begin() + static_cast<std::ptrdiff_t>(indices.shape.rank()),
              src.shape.dims().end());
  Array dst{Shape(dims)};
  const auto size = static_cast<std::size_t>(row_size(dst));
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    if (indices.values[i] < 0 || indices.values[i] >= static_cast<double>(rows)) continue;
    for (std::size_t k = 0; k < size; ++k) {
      dst.values[static_cast<std::size_t>(indices.values[i]) * size + k] += src.values[i * size + k];
    }
  }
  return dst;
}

TEST_CASE("gather picks rows; their gradients add up", "[ops][gather]") {
  const std::vector<std::pair<Shape, Array>> cases = {
      {{5, 3}, Array({4}, {4, 0, 0, 2})}, {{5, 3, 2}, Array({2, 3}, {1, 1, 1, 4, 3, 0})},
      {{3}, Array({5}, {0, 2, 2, 1, 0})}, {{4, 70}, Array({}, {3})},
      {{1, 2}, Array({3}, {0, 0, 0})},
  };
  for (const auto& [table, indices] : cases) {
    check({.name = fmt::format("{} by {}", table.str(), indices.shape.str()),
           .inputs = {{integers(table, 1)}, {indices, DType::i32}},
           .build = [](const std::vector<Value>& x) { return std::vector{gather(x[0], x[1])}; },
           .reference = [](const std::vector<Array>& x) { return std::vector{gathered(x[0], x[1])}; },
           .scale = Scale::exact});
  }
}

TEST_CASE("gather of other types, and of indices out of range", "[ops][gather]") {
  const Input floats{integers({3, 2}, 1)};
  const Input bytes{Array({3, 2}, {1, 2, 3, 4, 254, 255}), DType::u8};
  const Input numbers{Array({3}, {2000000011, -5, 7}), DType::i32};
  const Input indices{Array({4}, {2, -1, 3, 0}), DType::i32};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {floats, bytes, numbers, indices}, [](const std::vector<Value>& x) {
      return std::vector{gather(x[0], x[3]), gather(x[1], x[3]), gather(x[2], x[3])};
    });
    const Array f = to_array(results[0]);
    CHECK(f.at({0, 1}) == floats.value.at({2, 1}));
    for (const std::int64_t row : {1, 2}) CHECK((std::isnan(f.at({row, 0})) && std::isnan(f.at({row, 1}))));
    CHECK(f.at({3, 0}) == floats.value.at({0, 0}));
    CHECK(to_array(results[1]).values == std::vector<double>{254, 255, 0, 0, 0, 0, 1, 2});
    CHECK(to_array(results[2]).values == std::vector<double>{7, 0, 0, 2000000011});
  }
}

TEST_CASE("scatter_add sums rows of one index and skips those out of range", "[ops][gather]") {
  const std::vector<std::pair<Shape, Array>> cases = {{{6, 3}, Array({6}, {1, 1, 4, -1, 5, 1})},
                                                      {{2, 3, 2}, Array({2, 3}, {0, 0, 0, 3, 3, 9})},
                                                      {{4}, Array({4}, {2, 2, 2, 2})}};
  for (const auto& [src, indices] : cases) {
    check({.name = fmt::format("{} by {}", src.str(), indices.shape.str()),
           .inputs = {{integers(src, 2)}, {indices, DType::i32}},
           .build = [](const std::vector<Value>& x) { return std::vector{scatter_add(x[0], x[1], 5)}; },
           .reference = [](const std::vector<Array>& x) { return std::vector{scattered(x[0], x[1], 5)}; },
           .scale = Scale::exact});
  }
}

TEST_CASE("the sums of scatter_add are added to another tensor", "[ops][gather]") {
  // Few indices and many; a line of several columns an item; rows without an index.
  struct Sizes {
    std::int64_t count, width, rows;
    bool is_computed;  // what they are added to: its memory may be that of the result
  };
  for (const Sizes& s : {Sizes{6, 3, 5, true}, {150, 7, 40, true}, {150, 601, 9, false}, {150, 601, 300, true}}) {
    Array indices(Shape{s.count}), all(Shape{s.rows});
    for (std::int64_t i = 0; i < s.count; ++i) indices.at({i}) = static_cast<double>(i * i % (s.rows + 3) - 1);
    for (std::int64_t i = 0; i < s.rows; ++i) all.at({i}) = static_cast<double>(i);
    check({.name = fmt::format("{} of {} numbers into {} rows", s.count, s.width, s.rows),
           .inputs = {{integers({s.count, s.width}, 1)},
                      {indices, DType::i32},
                      {integers({s.rows, s.width}, 2)},
                      {all, DType::i32}},
           .build =
               [s](const std::vector<Value>& x) {
                 const Value base = s.is_computed ? gather(x[2], x[3]) : x[2];
                 return std::vector{base + scatter_add(x[0], x[1], s.rows)};
               },
           .reference =
               [s](const std::vector<Array>& x) {
                 Array sums = scattered(x[0], x[1], s.rows);
                 for (std::size_t i = 0; i < sums.values.size(); ++i) sums.values[i] += x[2].values[i];
                 return std::vector{sums};
               },
           .scale = Scale::exact,
           .gradient = false});
  }
}

TEST_CASE("rows of a table without rows are outside", "[ops][gather]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    // In a buffer of its own: Oclgrind takes an arena that the host writes a part of for uninitialised.
    const Value index = operand(graph, 0, Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{0, 1}));
    const Value rows = gather(graph.input("table", {DType::f32, {0, 3}}), index);
    const Value whole = gather(graph.input("whole", {DType::i32, {0, 3}}), index);
    Program program = compile(graph, std::vector{rows, whole}, std::make_shared<Variables>(device, 1));
    program.run();
    const Tensor result = program.read(rows), numbers = program.read(whole);
    CHECK(std::ranges::all_of(result.values<float>(), [](float x) { return std::isnan(x); }));
    CHECK(std::ranges::all_of(numbers.values<std::int32_t>(), [](std::int32_t x) { return x == 0; }));
  }
}

TEST_CASE("gather and scatter_add refuse what does not fit", "[ops][gather]") {
  const auto error_of = [](const TensorSpec& a, const TensorSpec& b, Value (*build)(Value, Value)) {
    return shape_error({a, b}, [&](const std::vector<Value>& x) { return std::vector{build(x[0], x[1])}; });
  };
  const auto rows = [](Value a, Value b) { return gather(a, b); };
  const auto scatter = [](Value a, Value b) { return scatter_add(a, b, 4); };
  CHECK_THAT(error_of({DType::f32, {3, 2}}, {DType::f32, {4}}, rows), contains("f32 [4]"));
  CHECK_THAT(error_of({DType::f32, {}}, {DType::i32, {4}}, rows), contains("[]"));
  CHECK_THAT(error_of({DType::f32, {3, 2}}, {DType::i32, {4}}, scatter), contains("[3, 2]") && contains("[4]"));
  Graph graph;
  const Value src = graph.input("src", {DType::f32, {2}});
  const Value many = scatter_add(src, graph.input("indices", {DType::i32, {2}}), (1 << 24) + 1);
  CHECK_THROWS_AS(gradient(sum(many), std::vector{src}), NotSupported);
}

}  // namespace
}  // namespace concord::test
