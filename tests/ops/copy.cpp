// The copy family moves bits unchanged; each gradient moves them back.
#include "concord/ops/copy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using Index = std::vector<std::int64_t>;

/// An array of `shape` whose elements are source(index).
Array generate(const Shape& shape, const std::function<double(const Index&)>& source) {
  Array array(shape);
  Index index(shape.rank(), 0);
  for (double& value : array.values) {
    value = source(index);
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      if (++index[axis] < shape.dims()[axis]) break;
      index[axis] = 0;
    }
  }
  return array;
}

double element(const Array& array, const Index& index) {
  const auto strides = array.shape.strides();
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return array.values[static_cast<std::size_t>(offset)];
}

Array transposed(const Array& src, const Index& order) {
  Index dims;
  for (const std::int64_t axis : order) dims.push_back(src.shape[axis]);
  return generate(Shape(dims), [&](const Index& index) {
    Index from(index.size());
    for (std::size_t i = 0; i < order.size(); ++i) from[static_cast<std::size_t>(order[i])] = index[i];
    return element(src, from);
  });
}

Array sliced(const Array& src, std::size_t axis, std::int64_t start, std::int64_t count, std::int64_t step) {
  Index dims(src.shape.dims().begin(), src.shape.dims().end());
  dims[axis] = count;
  return generate(Shape(dims), [&](Index index) {
    index[axis] = start + step * index[axis];
    return element(src, index);
  });
}

Array padded(const Array& src, const Index& before, const Index& after, double value) {
  Index dims;
  for (std::size_t i = 0; i < before.size(); ++i) dims.push_back(before[i] + src.shape.dims()[i] + after[i]);
  return generate(Shape(dims), [&](Index index) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] -= before[i];
      if (index[i] < 0 || index[i] >= src.shape.dims()[i]) return value;
    }
    return element(src, index);
  });
}

void check_copy(const std::string& name, const Array& src, const std::function<Value(Value)>& build,
                const std::function<Array(const Array&)>& reference) {
  check({.name = name,
         .inputs = {{src}},
         .build = [build](const std::vector<Value>& x) { return std::vector{build(x[0])}; },
         .reference = [reference](const std::vector<Array>& x) { return std::vector{reference(x[0])}; },
         .scale = Scale::exact});
}

TEST_CASE("transpose in every order", "[ops][copy]") {
  const std::vector<std::pair<Shape, Index>> cases = {{{5, 7}, {1, 0}},
                                                      {{1, 9}, {1, 0}},
                                                      {{3, 4, 5}, {2, 0, 1}},
                                                      {{3, 4, 5}, {0, 2, 1}},
                                                      {{3, 4, 5}, {2, 1, 0}},
                                                      {{2, 3, 4, 5}, {0, 2, 3, 1}},
                                                      {{2, 3, 4, 5}, {3, 2, 1, 0}},
                                                      {{33, 35}, {1, 0}}};
  for (const auto& [shape, order] : cases) {
    check_copy(
        fmt::format("{} to [{}]", shape.str(), fmt::join(order, ", ")), integers(shape, 1),
        [&](Value x) { return transpose(x, order); }, [&](const Array& x) { return transposed(x, order); });
  }
}

TEST_CASE("slice takes a range along one axis", "[ops][copy]") {
  const Shape shape{4, 7, 5};
  const Array src = integers(shape, 2);
  check_copy(
      "first axis", src, [](Value x) { return slice(x, 0, 1, 3); },
      [](const Array& x) { return sliced(x, 0, 1, 2, 1); });
  check_copy(
      "with a step", src, [](Value x) { return slice(x, 1, 1, 7, 3); },
      [](const Array& x) { return sliced(x, 1, 1, 2, 3); });
  check_copy(
      "from the end", src, [](Value x) { return slice(x, -1, -3, -1); },
      [](const Array& x) { return sliced(x, 2, 2, 2, 1); });
  check_copy(
      "a slice of a slice", src, [](Value x) { return slice(slice(x, 1, 0, 6, 2), 0, 3, 4); },
      [](const Array& x) { return sliced(sliced(x, 1, 0, 3, 2), 0, 3, 1, 1); });
}

TEST_CASE("padding of whole numbers is a whole number that the type has", "[ops][copy]") {
  Graph graph;
  const Value numbers = graph.input("numbers", {DType::i32, {2}}), bytes = graph.input("bytes", {DType::u8, {2}});
  for (const float value : {0.5F, 3e9F, -3e9F, NAN, INFINITY}) {
    INFO(value);
    CHECK_THROWS_AS(pad(numbers, {1}, {1}, value), ArgumentError);
    CHECK_THROWS_AS(pad(bytes, {1}, {1}, value), ArgumentError);
  }
  CHECK_THROWS_AS(pad(bytes, {1}, {1}, -1), ArgumentError);
  CHECK(pad(numbers, {1}, {1}, -7).shape() == Shape{4});
  CHECK(pad(bytes, {1}, {1}, 255).shape() == Shape{4});
}

TEST_CASE("pad puts a value around", "[ops][copy]") {
  check_copy(
      "every side", integers({2, 3}, 3),
      [](Value x) {
        return pad(x, {1, 0}, {2, 3}, -1.5F);
      },
      [](const Array& x) {
        return padded(x, {1, 0}, {2, 3}, -1.5);
      });
  check_copy(
      "four dimensions", integers({2, 2, 3, 3}, 4),
      [](Value x) {
        return pad(x, {0, 1, 1, 2}, {0, 0, 1, 0});
      },
      [](const Array& x) {
        return padded(x, {0, 1, 1, 2}, {0, 0, 1, 0}, 0);
      });
}

TEST_CASE("concat sets values side by side", "[ops][copy]") {
  for (const std::int64_t axis : {0, 1, 2}) {
    std::vector<Input> inputs;
    for (const std::int64_t size : {2, 1, 3}) {
      Index dims{2, 3, 2};
      dims[static_cast<std::size_t>(axis)] = size;
      inputs.push_back({integers(Shape(dims), static_cast<std::uint32_t>(size))});
    }
    check({.name = fmt::format("concat along {}", axis),
           .inputs = inputs,
           .build = [axis](const std::vector<Value>& x) { return std::vector{concat(x, axis)}; },
           .reference =
               [axis](const std::vector<Array>& x) {
                 Index dims(x[0].shape.dims().begin(), x[0].shape.dims().end());
                 dims[static_cast<std::size_t>(axis)] = 6;
                 return std::vector{generate(Shape(dims), [&](Index index) {
                   std::size_t which = 0;
                   std::int64_t& position = index[static_cast<std::size_t>(axis)];
                   while (position >= x[which].shape[axis]) position -= x[which++].shape[axis];
                   return element(x[which], index);
                 })};
               },
           .scale = Scale::exact});
  }
}

TEST_CASE("reshape and flatten keep the order of elements", "[ops][copy]") {
  const auto as = [](const Shape& shape) { return [shape](const Array& x) { return Array(shape, x.values); }; };
  check_copy(
      "reshape", integers({2, 6}, 5),
      [](Value x) {
        return reshape(x, {3, -1}) * 2.0F;
      },
      [](const Array& x) {
        Array y(Shape{3, 4}, x.values);
        for (double& v : y.values) v *= 2;
        return y;
      });
  check_copy(
      "flatten", integers({2, 3, 4}, 6), [](Value x) { return flatten(x); }, as({2, 12}));
  check_copy(
      "a row and back", integers({4, 3}, 7),
      [](Value x) {
        return transpose(reshape(transpose(x, {1, 0}), {2, 6}), {1, 0});
      },
      [](const Array& x) {
        Array y(Shape{2, 6}, transposed(x, {1, 0}).values);
        return transposed(y, {1, 0});
      });
}

TEST_CASE("copies move every bit and every type", "[ops][copy]") {
  Graph graph;
  const std::vector<std::uint32_t> bits = {0x80000000U, 0x7FC00123U, 0x7F800000U,
                                           0x00000001U, 0xFF800000U, 0x3F800000U};
  const Tensor floats = Tensor::from_bytes({DType::f32, {2, 3}}, std::as_bytes(std::span(bits)));
  std::vector<std::uint8_t> byte_values(15);
  std::vector<std::int32_t> number_values(15);
  for (std::size_t i = 0; i < 15; ++i) {
    byte_values[i] = static_cast<std::uint8_t>(250 - i);
    number_values[i] = static_cast<std::int32_t>(2000000011 - 3 * i);
  }
  const Value x = operand(graph, 0, floats);
  const Value bytes = operand(graph, 1, Tensor::of({5, 3}, byte_values));
  const Value numbers = operand(graph, 2, Tensor::of({5, 3}, number_values));
  const std::vector<Value> outputs = {transpose(x, {1, 0}), concat({bytes, slice(bytes, 0, 1, 4, 2)}, 0),
                                      transpose(numbers, {1, 0}), pad(numbers, {0, 1}, {0, 0}, 7)};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto program = std::make_shared<Program>(compile(graph, outputs, std::make_shared<Variables>(device, 1)));
    keep(program);
    program->run();
    const Tensor moved = program->read(outputs[0]);
    std::vector<std::uint32_t> moved_bits(6);
    std::memcpy(moved_bits.data(), moved.bytes().data(), 24);
    CHECK(moved_bits == std::vector<std::uint32_t>{bits[0], bits[3], bits[1], bits[4], bits[2], bits[5]});
    const Tensor joined = program->read(outputs[1]);
    const auto u8 = joined.values<std::uint8_t>();
    CHECK(u8[14] == 236);
    CHECK(u8[15] == 247);
    CHECK(u8[20] == 239);
    const Tensor turned = program->read(outputs[2]);
    CHECK(turned.values<std::int32_t>()[1] == number_values[3]);
    const Tensor wide = program->read(outputs[3]);
    CHECK(wide.values<std::int32_t>()[0] == 7);
    CHECK(wide.values<std::int32_t>()[1] == number_values[0]);
  }
}

TEST_CASE("the copy family refuses what does not fit", "[ops][copy]") {
  const auto error_of = [](const std::function<Value(Value)>& build) {
    return shape_error({{DType::f32, {2, 6}}}, [&](const std::vector<Value>& x) { return std::vector{build(x[0])}; });
  };
  CHECK_THAT(error_of([](Value x) { return reshape(x, Shape{5}); }), contains("[2, 6]") && contains("[5]"));
  CHECK_THAT(error_of([](Value x) { return reshape(x, {5, -1}); }), contains("[2, 6]"));
  CHECK_THAT(error_of([](Value x) { return reshape(x, {-1, -1}); }), contains("-1"));
  CHECK_THAT(error_of([](Value x) { return transpose(x, {0, 0}); }), contains("[2, 6]"));
  CHECK_THAT(error_of([](Value x) { return slice(x, 1, 2, 7); }), contains("[2, 6]"));
  CHECK_THAT(error_of([](Value x) { return slice(x, 2, 0, 1); }), contains("[2, 6]"));
  CHECK_THAT(error_of([](Value x) { return pad(x, {0}, {0}); }), contains("[2, 6]"));
  CHECK_THAT(error_of([](Value x) {
               return concat({x, slice(x, 1, 0, 3)}, 0);
             }),
             contains("[2, 6]") && contains("[2, 3]"));
}

TEST_CASE("what would copy a tensor onto itself adds no node", "[ops][copy]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 6}});
  CHECK(reshape(x, {2, 6}) == x);
  CHECK(transpose(x, {0, 1}) == x);
  CHECK(slice(x, 1, 0, 6) == x);
  CHECK(pad(x, {0, 0}, {0, 0}) == x);
  CHECK(concat({x}, 0) == x);
}

}  // namespace
}  // namespace concord::test
