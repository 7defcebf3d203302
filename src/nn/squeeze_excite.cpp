// SqueezeExcite: pooling, two convolutions, a product.
#include "concord/nn/squeeze_excite.hpp"

#include "concord/ops/pool.hpp"

namespace concord::nn {

SqueezeExcite::SqueezeExcite(std::int64_t channels, std::int64_t squeezed, const SqueezeExciteOptions& options)
    : fc1_(channels, squeezed, 1), fc2_(squeezed, channels, 1), options_(options) {}

Value SqueezeExcite::forward(Value x) {
  return x * options_.scale(fc2_(options_.activation(fc1_(global_avg_pool2d(x)))));
}

}  // namespace concord::nn
