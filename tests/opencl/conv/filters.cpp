// Weights as filters: every order of them against plain loops, and several in one launch with the bits of one by one.
#include "concord/opencl/conv/filters.hpp"

#include <random>

#include "concord/core/bf16.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::Filters;
using FiltersPtr = std::shared_ptr<const Filters>;
using Halves = std::vector<std::uint16_t>;

constexpr DType kNumber = DType::bf16;

struct Weights {
  ops::ConvSizes sizes;
  std::vector<float> values;
  [[nodiscard]] float at(std::int64_t o, std::int64_t c, std::int64_t tap) const {
    return values[static_cast<std::size_t>((o * sizes.c + c) * sizes.taps() + tap)];
  }
};

Weights weights_of(std::int64_t o, std::int64_t c, std::int64_t kh, std::int64_t kw) {
  Weights weights{ops::conv_sizes({1, c, 16, 16}, {o, c, kh, kw}, {}), {}};
  std::minstd_rand random(7);
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (std::int64_t i = 0; i < o * c * kh * kw; ++i) weights.values.push_back(numbers(random));
  return weights;
}

BufferPtr filled(Device& device, std::size_t bytes, const void* values) {
  BufferPtr buffer = device.allocate(bytes);
  device.write(*buffer, 0, {static_cast<const std::byte*>(values), bytes});
  return buffer;
}

std::vector<Halves> packed(Device& device, std::span<const Weights> weights, std::span<const FiltersPtr> filters,
                           bool together) {
  std::vector<BufferPtr> sources, results;
  std::vector<Operand> inputs, outputs;
  std::vector<Device::Reorder> reorders;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const ops::ConvSizes& s = weights[i].sizes;
    sources.push_back(filled(device, weights[i].values.size() * sizeof(float), weights[i].values.data()));
    results.push_back(device.allocate(filters[i]->bytes()));
    device.fill(*results.back(), 0, filters[i]->bytes(), 0);
    inputs.push_back({sources.back().get(), 0});
    outputs.push_back({results.back().get(), 0});
    reorders.push_back({{DType::f32, {s.o, s.c, s.kh, s.kw}}, nullptr, filters[i]});
  }
  if (together) {
    const std::unique_ptr<Kernel> kernel = device.prepare_reorders(reorders);
    REQUIRE(kernel != nullptr);
    kernel->bind(inputs, outputs, {})->enqueue();
  } else {
    for (std::size_t i = 0; i < filters.size(); ++i) {
      device.prepare_reorder(reorders[i].spec, nullptr, filters[i])
          ->bind({&inputs[i], 1}, {&outputs[i], 1}, {})
          ->enqueue();
    }
  }
  std::vector<Halves> found;
  for (const BufferPtr& result : results) {
    found.emplace_back(result->bytes() / 2);
    device.read(*result, 0, std::as_writable_bytes(std::span(found.back())));
  }
  return found;
}

/// What stands at number `i` of tap `tap` of line `line` of a phase of `taps` taps.
std::uint16_t at(const Halves& numbers, const Filters& filters, std::size_t phase, std::int64_t line, std::int64_t taps,
                 std::int64_t tap, std::int64_t i) {
  return numbers[filters.begin_of(phase) / 2 +
                 static_cast<std::size_t>((line * taps + tap) * filters.walk().padded + i)];
}

std::uint16_t bits(float value) { return bf16_bits(value); }

struct Case {
  std::int64_t o, c, kh, kw, padded;
};

}  // namespace

TEST_CASE("the weights of a forward pass are filters of a line for each output channel", "[opencl][conv]") {
  for (const DevicePtr& device : opencl_devices()) {
    for (const Case& k : {Case{24, 16, 3, 3, 32}, Case{8, 72, 1, 1, 128}, Case{33, 64, 2, 5, 64}}) {
      CAPTURE(device->info().name, k.o, k.c, k.kh, k.kw);
      const Weights w = weights_of(k.o, k.c, k.kh, k.kw);
      const FiltersPtr filters = opencl::forward_filters(w.sizes, kNumber, k.padded);
      const Halves found = packed(*device, {&w, 1}, {&filters, 1}, false)[0];
      std::size_t wrong = 0;
      for (std::int64_t i = 0; i < k.o * w.sizes.taps() * k.padded; ++i) {
        const std::int64_t c = i % k.padded, tap = i / k.padded % w.sizes.taps(), o = i / k.padded / w.sizes.taps();
        const float expected = c < k.c ? w.at(o, c, tap) : 0;
        wrong += at(found, *filters, 0, o, w.sizes.taps(), tap, c) != bits(expected) ? 1 : 0;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the weights of a data gradient are filters of a line for each channel of the image, by phases",
          "[opencl][conv]") {
  const Weights w = weights_of(40, 20, 3, 3);
  const std::vector<std::vector<std::uint32_t>> phases{{4}, {5, 3}, {7, 1}, {8, 6, 2, 0}};
  const FiltersPtr filters = opencl::backward_filters(w.sizes, kNumber, 64, phases);
  for (const DevicePtr& device : opencl_devices()) {
    CAPTURE(device->info().name);
    const Halves found = packed(*device, {&w, 1}, {&filters, 1}, false)[0];
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < phases.size(); ++p) {
      CHECK(filters->begin_of(p) % 256 == 0);
      const std::int64_t taps = std::ssize(phases[p]);
      for (std::int64_t i = 0; i < 20 * taps * 64; ++i) {
        const std::int64_t o = i % 64, tap = i / 64 % taps, c = i / 64 / taps;
        const float expected = o < 40 ? w.at(o, c, phases[p][static_cast<std::size_t>(tap)]) : 0;
        wrong += at(found, *filters, p, c, taps, tap, o) != bits(expected) ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the weights of a row-unrolled image have the taps of a row behind each other", "[opencl][conv]") {
  const Weights w = weights_of(16, 3, 5, 7);
  const FiltersPtr filters = opencl::row_unrolled_filters(w.sizes, kNumber, 32);
  for (const DevicePtr& device : opencl_devices()) {
    CAPTURE(device->info().name);
    const Halves found = packed(*device, {&w, 1}, {&filters, 1}, false)[0];
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < 16 * 5 * 32; ++i) {
      const std::int64_t j = i % 32, y = i / 32 % 5, o = i / 32 / 5;
      const float expected = j < 21 ? w.at(o, j / 7, y * 7 + j % 7) : 0;
      wrong += at(found, *filters, 0, o, 5, y, j) != bits(expected) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("filters that are packed together have the bits of those packed one by one", "[opencl][conv]") {
  std::vector<Weights> weights;
  std::vector<FiltersPtr> filters;
  for (std::int64_t i = 0; i < 70; ++i) {  // more than a launch takes
    weights.push_back(weights_of(8 + i, 8 * (1 + i % 3), 1 + i % 2, 3));
    const ops::ConvSizes& s = weights.back().sizes;
    filters.push_back(i % 2 == 0 ? opencl::forward_filters(s, kNumber, 32)
                                 : opencl::backward_filters(s, kNumber, 128, {{2, 0}, {1}}));
  }
  for (const DevicePtr& device : opencl_devices()) {
    CAPTURE(device->info().name);
    CHECK(packed(*device, weights, filters, true) == packed(*device, weights, filters, false));
    const std::vector<Device::Reorder> other{{{DType::f32, {8, 8}}, nullptr, filters[0]},
                                             {{DType::f32, {8, 8}}, nullptr, nullptr}};
    CHECK(device->prepare_reorders(other) == nullptr);
  }
}

TEST_CASE("filters are equal where they are packed alike", "[opencl][conv]") {
  const ops::ConvSizes s = weights_of(8, 16, 3, 3).sizes;
  const FiltersPtr filters = opencl::forward_filters(s, kNumber, 32);
  CHECK(filters->equals(*opencl::forward_filters(s, kNumber, 32)));
  CHECK_FALSE(filters->equals(*opencl::forward_filters(s, DType::f16, 32)));
  CHECK_FALSE(filters->equals(*opencl::forward_filters(s, kNumber, 64)));
  CHECK_FALSE(filters->equals(*opencl::backward_filters(s, kNumber, 32, {{0, 1, 2, 3, 4, 5, 6, 7, 8}})));
}

}  // namespace concord::test
