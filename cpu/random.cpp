// Random tensors from the counter-based stream of cl_kernels/shared/philox.h.
#include "concord/ops/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels.hpp"
#include "random_simd.hpp"
#include "shared/attention_dropout.h"

namespace concord::cpu {
namespace {

struct Draw {
  ops::Distribution distribution;
  float a, b;
  std::uint32_t purpose;
  std::int64_t elements;
};

constexpr std::int64_t kBlocks = 64;  // drawn at a time; a block makes four numbers

// Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958; 1 − u1 is never 0.
float normal(float u1, float u2) {
  return std::sqrt(-2.0F * std::log(1.0F - u1)) * std::cos(2.0F * std::numbers::pi_v<float> * u2);
}

// Elements [4·block, 4·(block + blocks)) of the tensor, fewer at its end; at most kBlocks.
void draw_blocks(const Draw& draw, const RandomStream& stream, std::int64_t block, std::int64_t blocks, float* dst) {
  const std::int64_t first = 4 * block, count = std::min(4 * blocks, draw.elements - first);
  float u[8 * kBlocks];
  if (draw.distribution == ops::Distribution::normal) {
    random_uniforms(stream, {static_cast<std::uint64_t>(2 * block), 1, 2 * blocks, 0}, u);
    for (std::int64_t k = 0; k < count; ++k) dst[first + k] = draw.a + draw.b * normal(u[2 * k], u[2 * k + 1]);
    return;
  }
  random_uniforms(stream, {static_cast<std::uint64_t>(block), 1, blocks, 0}, u);
  const float width = draw.b - draw.a;
  if (draw.distribution == ops::Distribution::uniform) {
    for (std::int64_t k = 0; k < count; ++k) dst[first + k] = draw.a + width * u[k];
  } else {
    keep_below(u, draw.a, draw.b, count, dst + first);
  }
}

PreparedKernel prepare_attention_factors(Backend& backend, const ops::Random& op, const KernelRequest& request) {
  const Draw draw{op.distribution(), op.a(), op.b(), op.purpose(), request.outputs[0].shape.elements()};
  const auto queries = static_cast<std::uint32_t>(request.outputs[0].shape[2]);
  const auto keys = static_cast<std::uint32_t>(request.outputs[0].shape[3]);
  return all_plain(request, loop_kernel("philox4x32", 0, [=, threads = backend.threads](const Pointers& pointers) {
                     const auto* state = pointers.input<std::uint32_t>(0);
                     const attention_dropout dropout =
                         dropout_of(state[0], state[1], state[2], draw.purpose, static_cast<std::uint32_t>(draw.a));
                     parallel_parts(draw.elements, threads, draw.elements >= kParallelElements / 4,
                                    [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t i = begin; i < end; ++i) {
                                        const auto row = static_cast<std::uint64_t>(i / keys);
                                        const bool is_kept =
                                            keeps_weight(dropout, static_cast<std::uint32_t>(row / queries),
                                                         static_cast<std::uint32_t>(row % queries),
                                                         static_cast<std::uint32_t>(i % keys), queries);
                                        pointers.output<float>(0)[i] = is_kept ? draw.b : 0.0F;
                                      }
                                    });
                   }));
}

PreparedKernel prepare_random(Backend& backend, const ops::Random& op, const KernelRequest& request) {
  if (op.distribution() == ops::Distribution::attention) return prepare_attention_factors(backend, op, request);
  const Draw draw{op.distribution(), op.a(), op.b(), op.purpose(), request.outputs[0].shape.elements()};
  return all_plain(request, loop_kernel("philox4x32", 0, [draw, threads = backend.threads](const Pointers& pointers) {
                     const auto* state = pointers.input<std::uint32_t>(0);
                     const RandomStream stream{state[0] | std::uint64_t{state[1]} << 32, state[2], draw.purpose};
                     parallel_parts((draw.elements + 3) / 4, threads, draw.elements >= kParallelElements / 4,
                                    [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t block = begin; block < end; block += kBlocks) {
                                        draw_blocks(draw, stream, block, std::min(kBlocks, end - block),
                                                    pointers.output<float>(0));
                                      }
                                    });
                   }));
}

}  // namespace

void add_random(Kernels& kernels) { kernels.add<ops::Random, prepare_random>(); }

}  // namespace concord::cpu
