// Magnitudes and differences, block by block; their results are joined in the order of the blocks.
#include "concord/compare/tolerance/magnitude.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "concord/compare/tolerance/magnitude_simd.hpp"
#include "concord/core/parallel.hpp"

namespace concord {
namespace {

/// Fewer blocks take only some hundred microseconds on one thread. Several tensors are read concurrently anyway.
constexpr std::size_t kLeastBlocks = 8;

template <class Number>
double blockwise_difference(std::span<const float> x, std::span<const Number> y) {
  std::vector<double> parts(blocks_of(x.size()));
  for_blocks(
      x.size(),
      [&](std::size_t i, std::size_t first, std::size_t count) {
        parts[i] = rows::difference(x.subspan(first, count), y.subspan(first, count));
      },
      kLeastBlocks);
  return parts.empty() ? 0 : *std::ranges::max_element(parts);
}

template <class Number>
Difference blockwise_elements(std::span<const float> x, std::span<const Number> y, double least) {
  std::vector<rows::Elements> parts(blocks_of(x.size()));
  for_blocks(
      x.size(),
      [&](std::size_t i, std::size_t first, std::size_t count) {
        parts[i] = rows::elements(x.subspan(first, count), y.subspan(first, count), least);
        parts[i].at += first;
      },
      kLeastBlocks);
  Difference all;
  for (const rows::Elements& part : parts) {
    all.largest = std::max(all.largest, part.largest);
    all.relative = std::max(all.relative, part.relative);
    if (part.ulps > all.ulps) all.at = part.at;
    all.ulps = std::max(all.ulps, part.ulps);
  }
  return all;
}

/// Of what must be equal.
Difference difference_at(std::optional<std::size_t> place) {
  return place ? Difference{INFINITY, INFINITY, INFINITY, *place} : Difference{};
}

/// Neighbouring dimensions that are all summed or all not.
struct Run {
  std::size_t size;
  bool is_summed;
};

/// At least one.
std::vector<Run> runs_of(const Shape& shape, std::span<const std::size_t> axes) {
  const auto is_summed = [&](std::size_t d) { return std::ranges::find(axes, d) != axes.end(); };
  std::vector<Run> runs{{1, is_summed(0)}};
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (is_summed(d) != runs.back().is_summed) runs.push_back({1, is_summed(d)});
    runs.back().size *= static_cast<std::size_t>(shape.dims()[d]);
  }
  return runs;
}

}  // namespace

Magnitude magnitude_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  std::vector<rows::Sum> sums(blocks_of(values.size()));
  for_blocks(
      values.size(),
      [&](std::size_t i, std::size_t first, std::size_t count) { sums[i] = rows::sum(values.subspan(first, count)); },
      kLeastBlocks);
  rows::Sum total;
  for (const rows::Sum& sum : sums) {
    total.largest = std::max(total.largest, sum.largest);
    total.squares += sum.squares;
  }
  return {static_cast<double>(total.largest),
          std::sqrt(total.squares / static_cast<double>(std::max<std::size_t>(values.size(), 1)))};
}

double largest_rms_along(const Tensor& tensor, std::span<const std::size_t> axes) {
  const auto values = tensor.values<float>();
  const std::vector<Run> runs = runs_of(tensor.shape(), axes);
  std::size_t terms = 1, sums = 1;
  std::vector<std::size_t> steps(runs.size());  // in the sums, of each run
  for (std::size_t r = runs.size(); r-- > 0;) {
    steps[r] = runs[r].is_summed ? 0 : sums;
    (runs[r].is_summed ? terms : sums) *= runs[r].size;
  }
  const std::size_t row = runs.back().size;
  std::vector<double> squares(sums);
  std::vector<std::size_t> index(runs.size());
  for (std::size_t begin = 0; begin < values.size(); begin += row) {
    std::size_t sum = 0;
    for (std::size_t r = 0; r + 1 < runs.size(); ++r) sum += index[r] * steps[r];
    const auto numbers = values.subspan(begin, row);
    if (runs.back().is_summed) {
      squares[sum] += rows::sum(numbers).squares;
    } else {
      rows::add_squares(numbers, std::span(squares).subspan(sum, row));
    }
    for (std::size_t r = runs.size() - 1; r-- > 0;) {
      if (++index[r] < runs[r].size) break;
      index[r] = 0;
    }
  }
  if (squares.empty()) return 0;
  return std::sqrt(*std::ranges::max_element(squares) / static_cast<double>(std::max<std::size_t>(terms, 1)));
}

const Magnitude& Magnitudes::of(const Tensor& tensor) {
  Known& known = [&]() -> Known& {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = known_.try_emplace(tensor.bytes().data());
    if (is_new) place->second.tensor = tensor;
    return place->second;
  }();
  std::call_once(known.found, [&] { known.magnitude = magnitude_of(known.tensor); });
  return known.magnitude;
}

Magnitudes::Along& Magnitudes::place_of(const Tensor& tensor, std::span<const std::size_t> axes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(along_, [&](const Along& along) {
    return along.tensor.bytes().data() == tensor.bytes().data() && along.tensor.shape() == tensor.shape() &&
           std::ranges::equal(along.axes, axes);
  });
  if (found != along_.end()) return *found;
  Along& along = along_.emplace_back();
  along.tensor = tensor;
  along.axes.assign(axes.begin(), axes.end());
  return along;
}

double Magnitudes::largest_rms_along(const Tensor& tensor, std::span<const std::size_t> axes) {
  Along& along = place_of(tensor, axes);
  std::call_once(along.found, [&] { along.rms = concord::largest_rms_along(along.tensor, along.axes); });
  return along.rms;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::f32) return std::ranges::equal(a.bytes(), b.bytes()) ? 0 : INFINITY;
  return blockwise_difference(a.values<float>(), b.values<float>());
}

double largest_difference(const Tensor& a, std::span<const double> b) {
  if (a.dtype() == DType::i32) return std::ranges::equal(a.values<std::int32_t>(), b) ? 0 : INFINITY;
  return blockwise_difference(a.values<float>(), b);
}

Difference difference_of(const Tensor& a, const Tensor& b, double least) {
  if (a.dtype() == DType::f32) return blockwise_elements(a.values<float>(), b.values<float>(), least);
  const auto unequal = std::ranges::mismatch(a.bytes(), b.bytes()).in1;
  if (unequal == a.bytes().end()) return {};
  return difference_at(static_cast<std::size_t>(unequal - a.bytes().begin()) / size_of(a.dtype()));
}

Difference difference_of(const Tensor& a, std::span<const double> b, double least) {
  if (a.dtype() != DType::i32) return blockwise_elements(a.values<float>(), b, least);
  const auto values = a.values<std::int32_t>();
  const auto unequal = std::ranges::mismatch(values, b).in1;
  if (unequal == values.end()) return {};
  return difference_at(static_cast<std::size_t>(unequal - values.begin()));
}

}  // namespace concord
