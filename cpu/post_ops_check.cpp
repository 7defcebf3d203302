// One small product with the chain and one without, to which plain loops apply the chain.
#include "post_ops_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "concord/core/log.hpp"
#include "concord/core/philox.hpp"
#include "onednn.hpp"

namespace concord::cpu {
namespace {

using dnnl::algorithm;
using Tag = dnnl::memory::format_tag;

/// The steps of a chain, each with whether its operand is of the whole result.
using Chain = std::vector<std::pair<algorithm, bool>>;

// Neither whole tiles nor whole vectors, in any dimension.
constexpr std::int64_t kRows = 17, kInner = 35, kChannels = 20, kSide = 5;

Desc f32(const Dims& dims, Tag tag) { return {dims, dnnl::memory::data_type::f32, tag}; }

/// Memory of numbers in [-1, 1).
dnnl::memory drawn(const Desc& desc, std::uint64_t seed) {
  dnnl::memory memory(desc, engine());
  const Philox stream(seed, philox_purpose("post-operations"));
  auto* const values = static_cast<float*>(memory.get_data_handle());
  for (std::size_t i = 0; i < desc.get_size() / sizeof(float); ++i) values[i] = 2 * stream.uniform(i) - 1;
  return memory;
}

std::span<const float> values_of(const dnnl::memory& memory) {
  return {static_cast<const float*>(memory.get_data_handle()), memory.get_desc().get_size() / sizeof(float)};
}

/// The operands of a small product. Channels are innermost in its result.
struct Operands {
  Desc dst, by_channel;
  dnnl::memory src, weights, whole, channels;

  explicit Operands(Product product)
      : dst(product == Product::matmul ? f32({kRows, kChannels}, Tag::ab)
                                       : f32({1, kChannels, kSide, kSide}, Tag::nhwc)),
        by_channel(product == Product::matmul ? f32({1, kChannels}, Tag::ab) : f32({1, kChannels, 1, 1}, Tag::nchw)),
        src(drawn(
            product == Product::matmul ? f32({kRows, kInner}, Tag::ab) : f32({1, kInner, kSide, kSide}, Tag::nhwc), 1)),
        weights(drawn(
            product == Product::matmul ? f32({kInner, kChannels}, Tag::ab) : f32({kChannels, kInner, 3, 3}, Tag::oihw),
            2)),
        whole(drawn(dst, 3)),
        channels(drawn(by_channel, 4)) {}
};

template <class Description>
void run(const Description& desc, const dnnl::primitive& primitive, const Operands& operands,
         std::unordered_map<int, dnnl::memory> arguments) {
  dnnl::memory weights(desc.weights_desc(), engine());
  dnnl::reorder(operands.weights, weights).execute(stream(), const_cast<dnnl::memory&>(operands.weights), weights);
  arguments.insert({{DNNL_ARG_SRC, operands.src},
                    {DNNL_ARG_WEIGHTS, weights},
                    {DNNL_ARG_SCRATCHPAD, dnnl::memory(desc.scratchpad_desc(), engine())}});
  primitive.execute(stream(), arguments);
  stream().wait();
}

/// The product's result with these post-operations; their operands are among `arguments`.
dnnl::memory result_of(Product product, const Operands& operands, const dnnl::post_ops& post_ops,
                       std::unordered_map<int, dnnl::memory> arguments) {
  dnnl::memory dst(operands.dst, engine());
  arguments.insert({DNNL_ARG_DST, dst});
  const Desc src = operands.src.get_desc(), weights = any_desc(DType::f32, dims_of(operands.weights.get_desc()));
  if (product == Product::matmul) {
    const auto desc = matmul_product(src, weights, Desc(), operands.dst, attributes(post_ops));
    run(desc, dnnl::matmul(desc), operands, std::move(arguments));
  } else {
    const ConvGeometry geometry{{1, 1}, {0, 0}, {1, 1}, {1, 1}};
    const auto desc = conv_forward(src, weights, Desc(), operands.dst, geometry, attributes(post_ops));
    run(desc, dnnl::convolution_forward(desc), operands, std::move(arguments));
  }
  return dst;
}

float applied(const EpilogueStep& step, float value, float operand) {
  switch (step.algorithm) {
    case algorithm::binary_add: return value + operand;
    case algorithm::binary_sub: return value - operand;
    case algorithm::binary_mul: return value * operand;
    default: return step.alpha * value + step.beta;
  }
}

/// The largest error over the largest value.
double error_of(Product product, const Epilogue& epilogue, const Chain& chain) {
  const Operands operands(product);
  dnnl::post_ops post_ops;
  std::unordered_map<int, dnnl::memory> arguments;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const EpilogueStep& step = epilogue.steps[i];
    if (step.operand < 0) {
      append_eltwise(post_ops, step.algorithm, step.alpha, step.beta);
      continue;
    }
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_ops.len()) | DNNL_ARG_SRC_1;
    post_ops.append_binary(step.algorithm, chain[i].second ? operands.dst : operands.by_channel);
    arguments.insert({argument, chain[i].second ? operands.whole : operands.channels});
  }
  const dnnl::memory plain = result_of(product, operands, {}, {});
  const dnnl::memory fused = result_of(product, operands, post_ops, std::move(arguments));
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < values_of(plain).size(); ++i) {
    float expected = values_of(plain)[i];
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const float operand =
          chain[k].second ? values_of(operands.whole)[i] : values_of(operands.channels)[i % kChannels];
      expected = applied(epilogue.steps[k], expected, operand);
    }
    const double difference = std::abs(static_cast<double>(values_of(fused)[i]) - static_cast<double>(expected));
    error = difference <= error ? error : difference;  // NaN stays
    largest = std::max(largest, std::abs(static_cast<double>(expected)));
  }
  return error / std::max(largest, 1e-30);
}

std::string words_of(const Chain& chain) {
  std::string words;
  for (const auto& [step, is_whole] : chain) {
    words += words.empty() ? "" : ", ";
    words += dnnl_alg_kind2str(dnnl::convert_to_c(step));
    if (step != algorithm::eltwise_linear) words += is_whole ? " with an image" : " by channel";
  }
  return words;
}

}  // namespace

bool is_right(Product product, const Epilogue& epilogue, const std::function<bool(int operand)>& is_whole) {
  constexpr double kTolerance = 1e-4;
  static std::mutex mutex;
  static std::map<std::pair<Product, Chain>, bool> known;
  Chain chain;
  for (const EpilogueStep& step : epilogue.steps) {
    chain.emplace_back(step.algorithm, step.operand >= 0 && is_whole(step.operand));
  }
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = known.try_emplace({product, chain}, false);
  if (!is_new) return place->second;
  const double error = error_of(product, epilogue, chain);
  place->second = error <= kTolerance;
  if (!place->second) {
    log(LogLevel::warning,
        fmt::format("oneDNN computes {} behind a {} wrong (error {:.2g}): it is computed by itself. Please report it",
                    words_of(chain), product == Product::matmul ? "matrix product" : "convolution", error));
  }
  return place->second;
}

}  // namespace concord::cpu
