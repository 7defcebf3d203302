// The order and time limit of tuning.
#include "concord/device/tuner.hpp"

#include <algorithm>
#include <chrono>

#include "concord/core/error.hpp"
#include "concord/core/timeline.hpp"

namespace concord {

std::vector<TunableProduct> tune_within(Tuner& tuner, std::vector<TunableProduct> products, double seconds,
                                        const TuningStep& step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::ranges::stable_sort(products, std::ranges::greater(), [](const TunableProduct& product) {
    return product.flops * static_cast<double>(product.uses);
  });
  for (auto product = products.begin(); product != products.end(); ++product) {
    const double left = seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    if (left <= 0) return {product, products.end()};
    const timeline::Span span("measure matrix multiplication");
    try {
      step(*product, tuner.tune(product->key, left), {});
    } catch (const DeviceError& error) {  // OutOfMemory among them
      step(*product, {}, error.what());
    }
  }
  return {};
}

}  // namespace concord
