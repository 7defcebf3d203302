// Functions that move values: parts, stacks, selections and masks; shuffles are held against PyTorch in tests/nn.
#include "concord/ops/rearrange.hpp"

#include <cmath>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Elements of rows `begin` to `end` of x (R, C).
Array rows_of(const Array& x, std::int64_t begin, std::int64_t end) {
  Array part(Shape{end - begin, x.shape[1]});
  for (std::size_t i = 0; i < part.values.size(); ++i) {
    part.values[i] = x.values[static_cast<std::size_t>(begin * x.shape[1]) + i];
  }
  return part;
}

Array reshaped(Array x, const Shape& shape) {
  x.shape = shape;
  return x;
}

TEST_CASE("integers stay integers where they are repeated, filled or limited", "[ops][rearrange]") {
  const Input words{Array({2, 1}, {-7, 1 << 24}), DType::i32}, bytes{Array({2, 1}, {7, 255}), DType::u8};
  const Input mask{Array({2, 1}, {0, 1}), DType::u8};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> found = run(device, {words, bytes, mask}, [](const std::vector<Value>& x) {
      return std::vector{broadcast_to(x[0], {2, 2}), broadcast_to(x[1], {2, 2}), masked_fill(x[0], x[2], -9.5F),
                         masked_fill(x[1], x[2], 3), clamp(x[0], -3, 5),         clamp(x[0], -3.5F, 5.5F)};
    });
    CHECK(difference(found[0], Tensor::of<std::int32_t>({2, 2}, {-7, -7, 1 << 24, 1 << 24})) == "");
    CHECK(difference(found[1], Tensor::of<std::uint8_t>({2, 2}, {7, 7, 255, 255})) == "");
    CHECK(difference(found[2], Tensor::of<std::int32_t>({2, 1}, {-7, -9})) == "");
    CHECK(difference(found[3], Tensor::of<std::uint8_t>({2, 1}, {7, 3})) == "");
    CHECK(difference(found[4], Tensor::of<std::int32_t>({2, 1}, {-3, 5})) == "");
    CHECK(difference(found[5], Tensor::of<float>({2, 1}, {-3.5F, 5.5F})) == "");
  }
}

TEST_CASE("axes, parts and stacks", "[ops][rearrange]") {
  check({.name = "split, chunk, stack, squeeze, unsqueeze, broadcast_to",
         .inputs = {{integers({5, 3}, 1)}, {integers({5, 3}, 2)}},
         .build =
             [](const std::vector<Value>& x) {
               const auto halves = split(x[0], {1, 4}, 0);
               const auto chunks = chunk(x[0], 3);
               return std::vector{halves[0],           halves[1],
                                  chunks[0],           chunks[2],
                                  stack({x[0], x[1]}), squeeze(unsqueeze(x[0], -1) * 2.0F, 2),
                                  unsqueeze(x[0], 0),  broadcast_to(halves[0], {2, 4, 3})};
             },
         .reference =
             [](const std::vector<Array>& x) {
               Array both(Shape{2, 5, 3}), twice = x[0], wide(Shape{2, 4, 3});
               for (std::size_t i = 0; i < 15; ++i) {
                 both.values[i] = x[0].values[i];
                 both.values[15 + i] = x[1].values[i];
                 twice.values[i] *= 2;
               }
               for (std::size_t i = 0; i < wide.values.size(); ++i) wide.values[i] = x[0].values[i % 3];
               return std::vector{rows_of(x[0], 0, 1),
                                  rows_of(x[0], 1, 5),
                                  rows_of(x[0], 0, 2),
                                  rows_of(x[0], 4, 5),
                                  both,
                                  twice,
                                  reshaped(x[0], {1, 5, 3}),
                                  wide};
             },
         .scale = Scale::exact});
}

TEST_CASE("stack along the last axis, and a selection of columns", "[ops][rearrange]") {
  check({.name = "columns",
         .inputs = {{integers({3, 4}, 1)}, {Array({5}, {2, 0, 0, 3, 2}), DType::i32}},
         .build =
             [](const std::vector<Value>& x) {
               return std::vector{stack({x[0], x[0]}, -1), index_select(x[0], 1, x[1])};
             },
         .reference =
             [](const std::vector<Array>& x) {
               Array twice(Shape{3, 4, 2}), selected(Shape{3, 5});
               for (std::size_t i = 0; i < twice.values.size(); ++i) twice.values[i] = x[0].values[i / 2];
               for (std::int64_t r = 0; r < 3; ++r) {
                 for (std::int64_t c = 0; c < 5; ++c) {
                   selected.at({r, c}) = x[0].at({r, static_cast<std::int64_t>(x[1].at({c}))});
                 }
               }
               return std::vector{twice, selected};
             },
         .scale = Scale::exact});
}

TEST_CASE("one_hot, masked_fill and argmin", "[ops][rearrange]") {
  check({.name = "masks",
         .inputs = {{integers({2, 3}, 1)}, {Array({3}, {0, 1, 0}), DType::u8}, {Array({4}, {2, 0, -1, 3}), DType::i32}},
         .build =
             [](const std::vector<Value>& x) {
               return std::vector{masked_fill(x[0], x[1], -9), one_hot(x[2], 3)};
             },
         .reference =
             [](const std::vector<Array>& x) {
               Array filled = x[0];
               filled.at({0, 1}) = filled.at({1, 1}) = -9;
               return std::vector{filled, Array({4, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0})};
             },
         .scale = Scale::exact});
  const Input values{Array({3, 4}, {3, -1, 2, -1, 0, 0, 0, 0, 5, std::nan(""), -7, 1})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {values}, [](const std::vector<Value>& x) {
      return std::vector{argmin(x[0], 1), argmin(x[0], -1, true)};
    });
    CHECK(to_array(results[0]).values == std::vector<double>{1, 0, 1});
    CHECK(results[1].shape() == Shape{3, 1});
  }
}

TEST_CASE("functions that move values refuse what does not fit", "[ops][rearrange]") {
  const auto error_of = [](const Shape& shape, const std::function<Value(Value)>& build) {
    return shape_error({{DType::f32, shape}}, [&](const std::vector<Value>& x) { return std::vector{build(x[0])}; });
  };
  CHECK_THAT(error_of({2, 3}, [](Value x) { return unsqueeze(x, 3); }), contains("3") && contains("[2, 3]"));
  CHECK_THAT(error_of({2, 3}, [](Value x) { return squeeze(x, 0); }), contains("[2, 3]"));
  CHECK_THAT(error_of({2, 3}, [](Value x) { return broadcast_to(x, {4, 3}); }), contains("[4, 3]"));
  CHECK_THAT(error_of({2, 3}, [](Value x) { return broadcast_to(x, {3}); }), contains("[3]"));
  CHECK_THAT(error_of({5, 3}, [](Value x) { return split(x, {2, 2}).front(); }), contains("[2, 2]"));
  CHECK_THAT(error_of({2, 3}, [](Value x) { return stack({x, unsqueeze(x, 0)}); }), contains("[1, 2, 3]"));
  CHECK_THAT(error_of({1, 6, 2, 2}, [](Value x) { return pixel_shuffle(x, 2); }), contains("[1, 6, 2, 2]"));
  CHECK_THAT(error_of({1, 6, 3, 2}, [](Value x) { return pixel_unshuffle(x, 2); }), contains("[1, 6, 3, 2]"));
  CHECK_THAT(error_of({6, 2, 2}, [](Value x) { return pixel_shuffle(x, 2); }), contains("[6, 2, 2]"));
  CHECK_THAT(error_of({1, 6, 2}, [](Value x) { return channel_shuffle(x, 4); }), contains("4 groups"));
  CHECK_THAT(error_of({2, 3}, [](Value x) { return one_hot(x, 4); }), contains("f32 [2, 3]"));
  CHECK_THAT(error_of({3}, [](Value x) { return masked_fill(x, broadcast_to(x, {2, 3}), 0); }), contains("[2, 3]"));
}

}  // namespace
}  // namespace concord::test
