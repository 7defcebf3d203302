// Batch normalisation and its gradient, in the layout of the images: rows of channels if channels are contiguous, else
// planes of one channel. oneDNN's own version keeps the mean in single precision, and its rounding stays in every
// value. Each thread has parts, which depend only on the sizes. The sums of the parts are joined by channel in double
// (Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm …", 1979).
#include "concord/ops/normalise.hpp"

#include <algorithm>
#include <cmath>

#include "batch_norm_simd.hpp"
#include "kernels.hpp"

namespace concord::cpu {
namespace {

constexpr std::int64_t kPartElements = 16384;
constexpr std::int64_t kMostParts = 64;

/// How a batch (N, C, …) is cut: `tiles` of neighbouring channels, each into `parts`.
struct BatchCut {
  std::int64_t channels, tile, tiles, rows, row_stride, channel_stride, run, parts;
  bool by_channel, parallel;
  int threads;

  BatchCut(const TensorSpec& src, const Layout& layout, int thread_count) : threads(thread_count) {
    const std::int64_t images = src.shape[0], elements = src.shape.elements();
    channels = src.shape[1];
    const std::int64_t plane = elements / (images * channels);
    by_channel = plane > 1 && !is_channels_last(src, layout);
    tile = by_channel ? 1 : std::min(channels, kNormChannels);
    tiles = (channels + tile - 1) / tile;
    rows = by_channel ? images : images * plane;
    row_stride = by_channel ? channels * plane : channels;
    channel_stride = by_channel ? plane : 1;
    run = by_channel ? plane : 1;
    parts = std::clamp<std::int64_t>(rows * run * tile / kPartElements, 1, std::min(rows, kMostParts));
    parallel = elements >= kParallelElements;
  }

  [[nodiscard]] std::int64_t count() const { return rows * run; }
  [[nodiscard]] std::int64_t first_row(std::int64_t part) const { return rows * part / parts; }
  /// function(part number, its first channel, its first element, the part) on all threads.
  template <class Function>
  void each_part(const Function& function) const {
    parallel_for(tiles * parts, threads, parallel, [&](std::int64_t unit) {
      const std::int64_t number = unit % parts, channel = unit / parts * tile, row = first_row(number);
      const NormPart part{first_row(number + 1) - row, row_stride, run, std::min(tile, channels - channel), by_channel};
      function(number, channel, row * row_stride + channel * channel_stride, part);
    });
  }
  /// Values of a channel in a part.
  [[nodiscard]] auto part_count(std::int64_t part) const {
    return static_cast<double>((first_row(part + 1) - first_row(part)) * run);
  }
};

struct Moments {
  double mean = 0, variance = 0;
};

/// What is computed in double where squares leave fp32: a variance so small or large has lost digits, or all.
bool leaves_fp32(double variance) { return !(variance < 1e36) || (variance > 0 && variance < 1e-28); }

/// A channel's values that differ, but whose squares are all 0 in fp32, have a variance of 0 too; that counts only
/// where epsilon does not swallow it.
bool needs_double(double variance, float epsilon) {
  return leaves_fp32(variance) || (variance == 0 && epsilon < 1e-28F);
}

/// Means and Σ (src − mean)² of parts (parts, channels); the first row becomes the means and variances of all.
void join_moments(const BatchCut& cut, double* means, double* squares) {
  double count = cut.part_count(0);
  for (std::int64_t p = 1; p < cut.parts; ++p) {
    const double more = cut.part_count(p), weight = more / (count + more), both = count * weight;
    const double *const mean = means + p * cut.channels, *const square = squares + p * cut.channels;
    for (std::int64_t c = 0; c < cut.channels; ++c) {
      const double difference = mean[c] - means[c];
      means[c] += difference * weight;
      squares[c] += square[c] + difference * difference * both;
    }
    count += more;
  }
  for (std::int64_t c = 0; c < cut.channels; ++c) squares[c] /= count;
}

/// The statistics of all channels; `sums` (2, parts, channels) is where parts leave theirs.
template <class Stored, class Take>
void find_moments(const BatchCut& cut, const Stored* src, float epsilon, double* sums, const Take& take) {
  double* const means = sums;
  double* const squares = sums + cut.parts * cut.channels;
  bool wide = false;
  const auto sum_parts = [&] {
    cut.each_part([&](std::int64_t number, std::int64_t channel, std::int64_t first, const NormPart& part) {
      const std::int64_t at = number * cut.channels + channel;
      batch_norm_statistics(src + first, part, wide, means + at, squares + at);
    });
  };
  sum_parts();
  join_moments(cut, means, squares);
  wide = std::any_of(squares, squares + cut.channels, [&](double variance) { return needs_double(variance, epsilon); });
  if (wide) {
    sum_parts();
    join_moments(cut, means, squares);
  }
  for (std::int64_t c = 0; c < cut.channels; ++c) take(c, Moments{means[c], squares[c]});
}

template <class Stored>
void run_forward(const BatchCut& cut, float epsilon, const Pointers& pointers) {
  auto* const sums = pointers.workspace<double>();
  auto* const middle = reinterpret_cast<float*>(sums + 2 * cut.parts * cut.channels);
  float *const factor = middle + cut.channels, *const added = factor + cut.channels;
  const float *const scale = pointers.input<float>(1), *const shift = pointers.input<float>(2);
  find_moments(cut, pointers.input<Stored>(0), epsilon, sums, [&](std::int64_t c, const Moments& moments) {
    const double f = static_cast<double>(scale[c]) / std::sqrt(moments.variance + static_cast<double>(epsilon));
    middle[c] = static_cast<float>(moments.mean);
    factor[c] = static_cast<float>(f);
    added[c] = static_cast<float>(static_cast<double>(shift[c]) - (moments.mean - static_cast<double>(middle[c])) * f);
    pointers.output<float>(1)[c] = middle[c];
    pointers.output<float>(2)[c] = static_cast<float>(moments.variance);
  });
  cut.each_part([&](std::int64_t, std::int64_t channel, std::int64_t first, const NormPart& part) {
    batch_norm_forward(pointers.input<Stored>(0) + first, part, middle + channel, factor + channel, added + channel,
                       pointers.output<Stored>(0) + first);
  });
}

/// Of one channel in the whole batch.
struct GradientSums {
  double diff = 0;      // Σ diff_dst
  double products = 0;  // Σ diff_dst·(src − the mean of src)
  double rest = 0;      // the mean of src less what was given for it
};

/// From the sums of the parts, `channels` apart.
GradientSums joined_gradient(const BatchCut& cut, const NormSums* sums) {
  GradientSums all;
  for (std::int64_t p = 0; p < cut.parts; ++p) {
    const NormSums& part = sums[p * cut.channels];
    all.diff += part.diff * cut.part_count(p) + part.deviations;
    all.rest += part.centred;
  }
  const auto count = static_cast<double>(cut.count());
  const double mean = all.diff / count;
  all.rest /= count;
  for (std::int64_t p = 0; p < cut.parts; ++p) {
    const NormSums& part = sums[p * cut.channels];
    const double lifted = part.diff - mean;
    all.products += part.products + lifted * part.centred - all.rest * (part.deviations + lifted * cut.part_count(p));
  }
  return all;
}

template <class Stored>
void run_backward(const BatchCut& cut, float epsilon, const Pointers& pointers) {
  const Stored *const src = pointers.input<Stored>(0), *const diff_dst = pointers.input<Stored>(1);
  const float *const scale = pointers.input<float>(2), *const mean = pointers.input<float>(3);
  const float* const variance = pointers.input<float>(4);
  auto* const sums = pointers.workspace<NormSums>();
  auto* const moments = reinterpret_cast<double*>(sums + cut.parts * cut.channels);  // as find_moments takes them
  auto* const own_variance = moments + 2 * cut.parts * cut.channels;
  auto* const factor = reinterpret_cast<float*>(own_variance + cut.channels);
  float *const diff_mean = factor + cut.channels, *const slope = diff_mean + cut.channels;
  float* const rest = slope + cut.channels;
  // A variance that fp32 does not represent is computed again.
  bool wide = false;
  for (std::int64_t c = 0; c < cut.channels; ++c) {
    own_variance[c] = static_cast<double>(variance[c]);
    wide |= needs_double(own_variance[c], epsilon);
  }
  if (wide) {
    find_moments(cut, src, epsilon, moments, [&](std::int64_t c, const Moments& found) {
      if (needs_double(own_variance[c], epsilon)) own_variance[c] = found.variance;
    });
  }
  cut.each_part([&](std::int64_t number, std::int64_t channel, std::int64_t first, const NormPart& part) {
    batch_norm_backward_sums(src + first, diff_dst + first, part, wide, mean + channel,
                             sums + number * cut.channels + channel);
  });
  const auto count = static_cast<double>(cut.count());
  for (std::int64_t c = 0; c < cut.channels; ++c) {
    const GradientSums all = joined_gradient(cut, sums + c);
    const double r = 1 / std::sqrt(own_variance[c] + static_cast<double>(epsilon));
    const double middle = all.diff / count, steepness = all.products * r * r / count;
    factor[c] = static_cast<float>(static_cast<double>(scale[c]) * r);
    diff_mean[c] = static_cast<float>(middle);
    slope[c] = static_cast<float>(steepness);
    rest[c] = static_cast<float>(all.rest * steepness - (middle - static_cast<double>(diff_mean[c])));
    pointers.output<float>(1)[c] = static_cast<float>(all.products * r);
    pointers.output<float>(2)[c] = static_cast<float>(all.diff);
  }
  cut.each_part([&](std::int64_t, std::int64_t channel, std::int64_t first, const NormPart& part) {
    const NormGradient by{factor + channel, diff_mean + channel, mean + channel, slope + channel, rest + channel};
    batch_norm_backward(src + first, diff_dst + first, part, by, pointers.output<Stored>(0) + first);
  });
}

/// Images keep the layout and type they come in; the others are brought to it.
Layout kept_layout(const KernelRequest& request) {
  const Layout& given = request.input_layouts[0];
  return is_row_major(given) || is_channels_last(request.inputs[0], given) ? given : nullptr;
}

PreparedKernel in_layout(const KernelRequest& request, std::size_t images, std::unique_ptr<Kernel> kernel) {
  const Layout layout = kept_layout(request);
  PreparedKernel prepared = all_plain(request, std::move(kernel));
  for (std::size_t i = 0; i < images; ++i) prepared.input_layouts[i] = layout;
  prepared.output_layouts[0] = layout;
  return prepared;
}

DType kept_type(const KernelRequest& request) { return stored_type(request.inputs[0], kept_layout(request)); }

PreparedKernel prepare_batch_norm(Backend& backend, const ops::BatchNorm& op, const KernelRequest& request) {
  const BatchCut cut(request.inputs[0], request.input_layouts[0], backend.threads);
  const auto bytes = static_cast<std::size_t>(cut.channels) *
                     (2 * static_cast<std::size_t>(cut.parts) * sizeof(double) + 3 * sizeof(float));
  return in_layout(
      request, 1,
      loop_kernel(cut.by_channel ? "batch_norm planes" : "batch_norm rows", bytes,
                  in_stored_type(kept_type(request), [cut, epsilon = op.epsilon()](auto stored, const Pointers& p) {
                    run_forward<decltype(stored)>(cut, epsilon, p);
                  })));
}

PreparedKernel prepare_batch_norm_backward(Backend& backend, const ops::BatchNormBackward& op,
                                           const KernelRequest& request) {
  const BatchCut cut(request.inputs[0], request.input_layouts[0], backend.threads);
  const auto parts = static_cast<std::size_t>(cut.parts);
  const auto bytes = static_cast<std::size_t>(cut.channels) *
                     (parts * sizeof(NormSums) + (2 * parts + 1) * sizeof(double) + 4 * sizeof(float));
  return in_layout(
      request, 2,
      loop_kernel(cut.by_channel ? "batch_norm_backward planes" : "batch_norm_backward rows", bytes,
                  in_stored_type(kept_type(request), [cut, epsilon = op.epsilon()](auto stored, const Pointers& p) {
                    run_backward<decltype(stored)>(cut, epsilon, p);
                  })));
}

}  // namespace

void add_batch_norm(Kernels& kernels) {
  kernels.add<ops::BatchNorm, prepare_batch_norm>();
  kernels.add<ops::BatchNormBackward, prepare_batch_norm_backward>();
}

}  // namespace concord::cpu
