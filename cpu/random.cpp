// Random tensors from the counter-based stream of cl_kernels/philox.h.
#include "concord/ops/random.hpp"

#include <cmath>
#include <numbers>

#include "families.hpp"
#include "philox.h"

namespace concord::cpu {
namespace {

struct Draw {
  ops::Distribution distribution;
  float a, b;
  std::uint32_t purpose;
  std::int64_t elements;
};

struct Stream {
  std::uint64_t seed;
  std::uint32_t step, purpose;
  // Uniforms of indices 4·block … 4·block + 3.
  void uniforms(std::int64_t block, float* four) const {
    const philox_block words = philox4x32(static_cast<std::uint64_t>(block), purpose, step, seed);
    for (int k = 0; k < 4; ++k) four[k] = static_cast<float>(words.word[k] >> 8) * 5.9604644775390625e-8F;
  }
};

// Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958; 1 − u1 is never 0.
float normal(float u1, float u2) {
  return std::sqrt(-2.0F * std::log(1.0F - u1)) * std::cos(2.0F * std::numbers::pi_v<float> * u2);
}

// Elements [4·block, 4·block + 4) of the tensor, fewer at its end.
void draw_block(const Draw& draw, const Stream& stream, std::int64_t block, float* dst) {
  const std::int64_t first = 4 * block;
  const std::int64_t count = std::min<std::int64_t>(4, draw.elements - first);
  float u[8];
  if (draw.distribution == ops::Distribution::normal) {
    stream.uniforms(2 * block, u);
    stream.uniforms(2 * block + 1, u + 4);
    for (std::int64_t k = 0; k < count; ++k) dst[first + k] = draw.a + draw.b * normal(u[2 * k], u[2 * k + 1]);
    return;
  }
  stream.uniforms(block, u);
  const float width = draw.b - draw.a;
  for (std::int64_t k = 0; k < count; ++k) {
    dst[first + k] = draw.distribution == ops::Distribution::uniform ? draw.a + width * u[k]
                     : u[k] < draw.a                                 ? draw.b
                                                                     : 0.0F;
  }
}

}  // namespace

PreparedKernel prepare_random(Backend& backend, const ops::Random& op, const KernelRequest& request) {
  const Draw draw{op.distribution(), op.a(), op.b(), op.purpose(), request.outputs[0].shape.elements()};
  return all_plain(request, loop_kernel("philox4x32", 0, [draw, threads = backend.threads](const Pointers& pointers) {
                     const auto* state = pointers.input<std::uint32_t>(0);
                     const Stream stream{
                         .seed = state[0] | std::uint64_t{state[1]} << 32, .step = state[2], .purpose = draw.purpose};
                     parallel_parts((draw.elements + 3) / 4, threads, draw.elements >= kParallelElements / 4,
                                    [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t block = begin; block < end; ++block) {
                                        draw_block(draw, stream, block, pointers.output<float>(0));
                                      }
                                    });
                   }));
}

}  // namespace concord::cpu
