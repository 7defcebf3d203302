// Cross-entropy with logits: one pass a row for the maximum, one for the exponentials.
#include <cmath>
#include <limits>

#include "concord/ops/softmax.hpp"
#include "kernels.hpp"
#include "softmax_simd.hpp"

namespace concord::cpu {
namespace {

struct LossSizes {
  std::int64_t rows, classes;
  float smoothing;
  bool indices;  // class indices instead of probabilities
};

void run_row(const LossSizes& s, const Pointers& pointers, std::int64_t row) {
  const float* logits = pointers.input<float>(0) + row * s.classes;
  const auto [highest, total] = softmax_total(logits, s.classes);
  const double log_total = std::log(total);
  pointers.output<float>(1)[row] = highest;
  pointers.output<float>(2)[row] = static_cast<float>(total);

  // −Σ t'·log p with log p = logit − max − log Σ exp(logit − max); the difference first: it may be 0 beside 1e30.
  const auto loss_of = [&, largest = static_cast<double>(highest)](std::int64_t c) {
    return log_total - (static_cast<double>(logits[c]) - largest);
  };
  const double smoothing = static_cast<double>(s.smoothing);
  double loss = 0;
  if (s.indices) {
    const std::int32_t target = pointers.input<std::int32_t>(1)[row];
    if (target < 0 || target >= s.classes) {
      loss = std::numeric_limits<double>::quiet_NaN();
    } else {
      loss = (1 - smoothing) * loss_of(target);
    }
  } else {
    const float* target = pointers.input<float>(1) + row * s.classes;
    for (std::int64_t c = 0; c < s.classes; ++c) {
      // A class that cannot be (probability 0, logit −∞) adds nothing.
      if (target[c] != 0) loss += (1 - smoothing) * static_cast<double>(target[c]) * loss_of(c);
    }
  }
  if (smoothing != 0) {
    double sum = 0;
    for (std::int64_t c = 0; c < s.classes; ++c) sum += loss_of(c);
    loss += smoothing / static_cast<double>(s.classes) * sum;
  }
  pointers.output<float>(0)[row] = static_cast<float>(loss);
}

PreparedKernel prepare_cross_entropy(Backend& backend, const ops::CrossEntropy& op, const KernelRequest& request) {
  const Shape& logits = request.inputs[0].shape;
  const LossSizes sizes{.rows = logits[0],
                        .classes = logits[1],
                        .smoothing = op.label_smoothing(),
                        .indices = request.inputs[1].dtype == DType::i32};
  const int threads = backend.threads;
  return all_plain(request, loop_kernel("cross_entropy rows", 0, [sizes, threads](const Pointers& pointers) {
                     parallel_for(sizes.rows, threads, sizes.rows * sizes.classes * 4 >= kParallelElements,
                                  [&](std::int64_t row) { run_row(sizes, pointers, row); });
                   }));
}

}  // namespace

void add_cross_entropy(Kernels& kernels) { kernels.add<ops::CrossEntropy, prepare_cross_entropy>(); }

}  // namespace concord::cpu
