// AllFinite: threads take chunks of the inputs. The largest bit pattern without the sign shows whether there is an
// infinity or a NaN.
#include "concord/ops/all_finite.hpp"

#include <algorithm>

#include "kernels.hpp"

namespace concord::cpu {
namespace {

constexpr std::int64_t kChunk = 65536;
constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinityBits = 0x7f800000;

struct Chunk {
  std::size_t input;
  std::int64_t begin, end;
};

std::uint32_t largest_bits(const std::uint32_t* src, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, src[i] & kMagnitude);
  return largest;
}

PreparedKernel prepare_all_finite(Backend& backend, const ops::AllFinite&, const KernelRequest& request) {
  std::vector<Chunk> chunks;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const std::int64_t count = request.inputs[i].shape.elements();
    elements += count;
    for (std::int64_t begin = 0; begin < count; begin += kChunk) {
      chunks.push_back({i, begin, std::min(begin + kChunk, count)});
    }
  }
  const std::size_t workspace = chunks.size() * sizeof(std::uint32_t);
  const auto run = [chunks = std::move(chunks), elements, threads = backend.threads](const Pointers& pointers) {
    auto* largest = pointers.workspace<std::uint32_t>();
    const auto count = static_cast<std::int64_t>(chunks.size());
    parallel_for(count, threads, elements >= 8 * kParallelElements, [&](std::int64_t c) {
      const Chunk& chunk = chunks[static_cast<std::size_t>(c)];
      largest[c] = largest_bits(pointers.input<std::uint32_t>(chunk.input) + chunk.begin, chunk.end - chunk.begin);
    });
    *pointers.output<float>(0) = largest_bits(largest, count) < kInfinityBits ? 1.0F : 0.0F;
  };
  return {loop_kernel("all_finite", workspace, run), std::vector<Layout>(request.inputs.size()),
          std::vector<Layout>(1)};
}

}  // namespace

void add_all_finite(Kernels& kernels) { kernels.add<ops::AllFinite, prepare_all_finite>(); }

}  // namespace concord::cpu
