// Dataset: checks of arrays, cuts, synthetic data, the order of an epoch.
#include "concord/data/dataset.hpp"

#include <numeric>
#include <set>

#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using Ints = std::vector<std::int32_t>;

Tensor labels_of(const Ints& values) {
  return Tensor::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}

// Row r holds the numbers 2r and 2r + 1, label r.
Dataset counting(std::int32_t n) {
  std::vector<float> values(static_cast<std::size_t>(2 * n));
  std::iota(values.begin(), values.end(), 0.0f);
  Ints labels(static_cast<std::size_t>(n));
  std::iota(labels.begin(), labels.end(), 0);
  return data::from_arrays(Tensor::of<float>({n, 2}, values), labels_of(labels));
}

Ints labels_in(const Dataset& dataset) {
  const auto values = dataset.labels.values<std::int32_t>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("from_arrays checks what it joins", "[data]") {
  const Tensor features(DType::f32, {3, 4});
  CHECK(data::from_arrays(features, labels_of({0, 4, 1})).classes == 5);
  CHECK(data::from_arrays(features, labels_of({0, 4, 1}), 7).classes == 7);
  CHECK(data::from_arrays(features, Tensor(DType::f32, {3, 2})).classes == 0);

  const auto refused = [&](Tensor f, Tensor l, int classes = 0) {
    return message_of<ArgumentError>([&] { (void)data::from_arrays(std::move(f), std::move(l), classes); });
  };
  CHECK(contains(refused(features, labels_of({0, 4, 1}), 4), "label 4 of sample 1 is outside [0, 4)"));
  CHECK(contains(refused(features, labels_of({0, 0, -1})), "label -1 of sample 2"));
  CHECK(contains(refused(Tensor(DType::f32, {0, 4}), labels_of({})), "empty"));
  CHECK(contains(refused(features, Tensor(DType::f32, {3}), 2), "need 0 classes"));

  const auto misfit = [&](Tensor f, Tensor l) {
    return message_of<ShapeError>([&] { (void)data::from_arrays(std::move(f), std::move(l)); });
  };
  CHECK(contains(misfit(features, labels_of({0, 1})), "f32 [3, 4] and labels i32 [2]"));
  CHECK(contains(misfit(Tensor(DType::bf16, {3}), labels_of({0, 1, 2})), "u8, f32 or i32"));
  CHECK(contains(misfit(features, Tensor(DType::u8, {3, 1})), "i32 or f32"));
  CHECK(contains(misfit(Tensor(DType::f32, {}), Tensor(DType::f32, {})), "first dimension"));
}

TEST_CASE("subset, slice and split copy whole samples", "[data]") {
  const Dataset dataset = counting(10);
  const Dataset part = data::subset(dataset, Ints{7, 2, 7});
  CHECK(labels_in(part) == Ints{7, 2, 7});
  CHECK(part.features.values<float>()[1] == 15.0f);
  CHECK(part.features.values<float>()[2] == 4.0f);
  CHECK(part.classes == 10);
  CHECK(part.device_copies != dataset.device_copies);
  CHECK(labels_in(data::slice(dataset, 8, 2)) == Ints{8, 9});

  const auto [rest, held_out] = data::split(dataset, 3, 5);
  CHECK(rest.size() == 7);
  CHECK(held_out.size() == 3);
  std::set<std::int32_t> all;
  for (const std::int32_t label : labels_in(rest)) all.insert(label);
  for (const std::int32_t label : labels_in(held_out)) all.insert(label);
  CHECK(all.size() == 10);

  CHECK(contains(message_of<ArgumentError>([&] { (void)data::subset(dataset, Ints{10}); }), "row 10 is outside"));
  CHECK(contains(message_of<ArgumentError>([&] { (void)data::subset(dataset, Ints{-1}); }), "row -1 is outside"));
  CHECK(contains(message_of<ArgumentError>([&] { (void)data::subset(dataset, Ints{}); }), "at least one row"));
  CHECK(contains(message_of<ArgumentError>([&] { (void)data::slice(dataset, 9, 2); }), "2 samples from sample 9 on"));
  CHECK_THROWS_AS(data::slice(dataset, -1, 2), ArgumentError);
  CHECK_THROWS_AS(data::split(dataset, 10), ArgumentError);
  CHECK_THROWS_AS(data::split(dataset, 0), ArgumentError);
}

TEST_CASE("synthetic data depends on its arguments alone and can be told apart", "[data]") {
  const Dataset a = data::synthetic({3, 4, 4}, 3, 30, 9);
  const Dataset b = data::synthetic({3, 4, 4}, 3, 60, 9);
  CHECK(a.features.spec() == TensorSpec{DType::f32, {30, 3, 4, 4}});
  CHECK(a.classes == 3);
  const auto va = a.features.values<float>();
  const auto vb = b.features.values<float>();
  CHECK(std::equal(va.begin(), va.end(), vb.begin()));  // more samples leave the first ones as they are
  CHECK(va[0] != data::synthetic({3, 4, 4}, 3, 30, 10).features.values<float>()[0]);

  // The nearest class mean, taken from the first half of b, finds the class in its second half.
  constexpr std::size_t kSize = 48;
  std::vector<std::vector<float>> means(3, std::vector<float>(kSize));
  for (std::size_t i = 0; i < 30 * kSize; ++i) means[i / kSize % 3][i % kSize] += vb[i] / 10;
  int right = 0;
  for (std::size_t row = 30; row < 60; ++row) {
    std::vector<float> distance(3);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < kSize; ++i) {
        const float d = vb[row * kSize + i] - means[c][i];
        distance[c] += d * d;
      }
    }
    const auto nearest = std::min_element(distance.begin(), distance.end()) - distance.begin();
    right += nearest == b.labels.values<std::int32_t>()[row];
  }
  CHECK(right == 30);
  CHECK_THROWS_AS(data::synthetic({3}, 0, 5), ArgumentError);
  CHECK_THROWS_AS(data::synthetic({3}, 2, 0), ArgumentError);
}

TEST_CASE("a permutation is the recorded one, on every machine", "[data]") {
  // Recorded from a Python program written from the papers.
  CHECK(data::permutation(10, 0, 0) == Ints{6, 8, 0, 1, 3, 7, 9, 5, 2, 4});
  CHECK(data::permutation(10, 0, 1) == Ints{9, 5, 6, 0, 1, 4, 7, 8, 2, 3});
  CHECK(data::permutation(10, 123456789012345, 0) == Ints{3, 4, 1, 2, 0, 6, 8, 7, 9, 5});
  std::uint64_t hash = 14695981039346656037ull;
  for (const std::int32_t i : data::permutation(60000, 1, 4)) {
    hash = (hash ^ static_cast<std::uint64_t>(i)) * 1099511628211ull;
  }
  CHECK(hash == 6011071151992064921ull);
}

TEST_CASE("a permutation has every number once", "[data]") {
  for (const std::int64_t n : {0, 1, 2, 3, 1000}) {
    Ints order = data::permutation(n, 77);
    std::sort(order.begin(), order.end());
    Ints expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(order == expected);
  }
  CHECK_THROWS_AS(data::permutation(-1, 0), ArgumentError);
  CHECK_THROWS_AS(data::permutation(std::int64_t{1} << 31, 0), ArgumentError);
}
