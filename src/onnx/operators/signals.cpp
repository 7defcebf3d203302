// Signals of ONNX: windows, filter banks, and Fourier transforms as products with matrices of cosines and sines.
#include <cmath>
#include <numbers>

#include "concord/core/check.hpp"
#include "concord/onnx/constant.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {
namespace {

// a0 − a1·cos(2πi/N) + a2·cos(4πi/N), N = size, or size − 1 for a symmetric window.
void cosine_window(Call& call, double a0, double a1, double a2) {
  const std::int64_t size = call.integer(0);
  const auto type = static_cast<ElementType>(call.integer("output_datatype", 1));
  const double period = static_cast<double>(call.integer("periodic", 1) != 0 ? size : size - 1);
  CONCORD_CHECK(size >= 0 && size <= (1 << 24), ShapeError, "a window of {}", size);
  HostTensor window(type, {size});
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    window.set(static_cast<std::size_t>(i), a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  call.set(0, std::move(window));
}

void hann(Call& call) { cosine_window(call, 0.5, 0.5, 0); }
void hamming(Call& call) { cosine_window(call, 25.0 / 46.0, 21.0 / 46.0, 0); }
void blackman(Call& call) { cosine_window(call, 0.42, 0.5, 0.08); }

void mel_weight_matrix(Call& call) {
  const std::int64_t mels = call.integer(0), length = call.integer(1), rate = call.integer(2);
  const double low = call.number(3), high = call.number(4);
  const std::int64_t bins = length / 2 + 1;
  CONCORD_CHECK(mels >= 1 && bins >= 1 && mels * bins <= (1 << 26), ShapeError, "{} mel bins of {}", mels, bins);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low_mel = mel(low), step = (mel(high) - low_mel) / static_cast<double>(mels + 2);
  const auto bin = [&](std::int64_t k) {
    const double hertz = 700 * (std::pow(10, (low_mel + static_cast<double>(k) * step) / 2595) - 1);
    return static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  };
  HostTensor matrix(static_cast<ElementType>(call.integer("output_datatype", 1)), {bins, mels});
  const auto put = [&](std::int64_t row, std::int64_t column, double value) {
    if (row >= 0 && row < bins) matrix.set(static_cast<std::size_t>(row * mels + column), value);
  };
  for (std::int64_t m = 0; m < mels; ++m) {
    const std::int64_t left = bin(m), centre = bin(m + 1), right = bin(m + 2);
    if (left == centre) {
      put(centre, m, 1);
    } else {
      for (std::int64_t i = left; i <= centre; ++i)
        put(i, m, static_cast<double>(i - left) / static_cast<double>(centre - left));
    }
    for (std::int64_t i = centre; i < right; ++i)
      put(i, m, static_cast<double>(right - i) / static_cast<double>(right - centre));
  }
  call.set(0, std::move(matrix));
}

// (2·size or size, 2·bins): a row of real and imaginary parts times it gives pairs of them.
HostTensor fourier_matrix(std::int64_t size, std::int64_t length, std::int64_t bins, bool is_complex, bool inverse) {
  const std::int64_t parts = is_complex ? 2 : 1;
  HostTensor matrix(ElementType::f32, {size * parts, bins * 2});
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t k = 0; k < bins; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i * k % length) / static_cast<double>(length);
      const double cosine = scale * std::cos(angle), sine = (inverse ? scale : -scale) * std::sin(angle);
      const auto put = [&](std::int64_t part, std::int64_t result, double value) {
        matrix.set(static_cast<std::size_t>((i * parts + part) * 2 * bins + 2 * k + result), value);
      };
      put(0, 0, cosine);
      put(0, 1, sine);
      if (!is_complex) continue;
      put(1, 0, -sine);
      put(1, 1, cosine);
    }
  }
  return matrix;
}

// x (…, size, 1 or 2) → (…, bins, 2).
Value transformed(const Value& x, std::int64_t length, std::int64_t bins, bool inverse) {
  const std::int64_t size = x.shape()[-2], parts = x.shape()[-1];
  CONCORD_CHECK(parts == 1 || parts == 2, ShapeError,
                "the last dimension must have a real part, or a real and an imaginary one");
  Dims dims = dims_of(x);
  dims[dims.size() - 2] = bins;
  dims.back() = 2;
  const Value rows = reshape(x, {-1, size * parts});
  const Value matrix = constant_value(x.graph(), fourier_matrix(size, length, bins, parts == 2, inverse));
  return reshape(matmul(rows, matrix), Shape(dims));
}

void dft(Call& call) {
  const bool inverse = call.integer("inverse", 0) != 0, onesided = call.integer("onesided", 0) != 0;
  const std::int64_t axis_given = call.opset() < 20 ? call.integer("axis", 1) : call.has(2) ? call.integer(2) : -2;
  const std::size_t axis = axis_of(axis_given, call.rank(0));
  CONCORD_CHECK(axis + 1 < call.rank(0) && !(inverse && onesided), NotSupported,
                "a transform along the last dimension, or a one-sided inverse");
  Value x = call.number_value(0);
  const std::int64_t length = call.has(1) ? call.integer(1) : call.dims(0)[axis];
  if (length < call.dims(0)[axis]) x = sliced_along(x, axis, 0, length);  // a longer one is padded with zeros
  Dims order;
  for (std::size_t i = 0; i < call.rank(0); ++i) order.push_back(static_cast<std::int64_t>(i));
  std::swap(order[axis], order[order.size() - 2]);
  const std::int64_t bins = onesided ? length / 2 + 1 : length;
  call.set(0, transposed(transformed(transposed(x, order), length, bins, inverse), order), call.type(0));
}

void stft(Call& call) {
  const std::int64_t step = call.integer(1);
  const bool onesided = call.integer("onesided", 1) != 0;
  Value x = call.number_value(0);  // (N, L) or (N, L, 1 or 2)
  if (x.shape().rank() == 2) x = unsqueeze(x, 2);
  const std::int64_t length = call.has(3) ? call.integer(3) : call.has(2) ? call.dims(2).at(0) : x.shape()[1];
  CONCORD_CHECK(step >= 1 && length >= 1 && length <= x.shape()[1], ShapeError, "frames of {} by {}", length, step);
  const std::int64_t frames = (x.shape()[1] - length) / step + 1;
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < frames; ++i) parts.push_back(slice(x, 1, i * step, i * step + length));
  Value framed = stack(parts, 1);  // (N, frames, length, 1 or 2)
  if (call.has(2)) framed = framed * reshape(call.number_value(2), {length, 1});
  call.set(0, transformed(framed, length, onesided ? length / 2 + 1 : length, false), call.type(0));
}

}  // namespace

void add_signals(Table& table) {
  table.add("HannWindow", {.since = 17, .run = hann, .known = {0}});
  table.add("HammingWindow", {.since = 17, .run = hamming, .known = {0}});
  table.add("BlackmanWindow", {.since = 17, .run = blackman, .known = {0}});
  table.add("MelWeightMatrix", {.since = 17, .run = mel_weight_matrix, .known = {0, 1, 2, 3, 4}});
  table.add("DFT", {.since = 17, .run = dft, .known = {1, 2}});
  table.add("STFT", {.since = 17, .run = stft, .known = {1, 3}});
}

}  // namespace concord::onnx
