// Softmax, its logarithm and the gradients: blocks of neighbouring columns spread over threads. Loops of our own: in
// oneDNN 2.6 a row with a NaN is [NaN, 0, 0, 0], the gradient of the logarithm is NaN where the result is −∞, and the
// logarithm is 1.4e-6 off where the result is 0.
#include "concord/ops/softmax.hpp"

#include <algorithm>

#include "concord/ops/axis.hpp"
#include "kernels.hpp"
#include "softmax_simd.hpp"

namespace concord::cpu {
namespace {

/// block(its columns, its offset) for all blocks of a tensor that is normalised along `axis`.
template <class Block>
void for_blocks(const ops::AxisSizes& s, int threads, const Block& block) {
  const std::int64_t wide = (s.inner + kSoftmaxLanes - 1) / kSoftmaxLanes, elements = s.outer * s.length * s.inner;
  parallel_for(s.outer * wide, threads, elements >= kParallelElements / 4, [&](std::int64_t unit) {
    const std::int64_t first = unit % wide * kSoftmaxLanes;
    block(SoftmaxBlock{s.length, s.inner, std::min(kSoftmaxLanes, s.inner - first)},
          unit / wide * s.length * s.inner + first);
  });
}

PreparedKernel prepare_softmax(Backend& backend, const ops::Softmax& op, const KernelRequest& request) {
  const ops::AxisSizes s = ops::axis_sizes(request.inputs[0].shape, op.axis());
  Loop loop = [s, log = op.log(), threads = backend.threads](const Pointers& pointers) {
    for_blocks(s, threads, [&](const SoftmaxBlock& block, std::int64_t at) {
      softmax_forward_block(block, log, pointers.input<float>(0) + at, pointers.output<float>(0) + at);
    });
  };
  return all_plain(request, loop_kernel(std::string(op.name()), 0, std::move(loop)));
}

PreparedKernel prepare_softmax_backward(Backend& backend, const ops::SoftmaxBackward& op,
                                        const KernelRequest& request) {
  const ops::AxisSizes s = ops::axis_sizes(request.inputs[0].shape, op.axis());
  Loop loop = [s, log = op.log(), threads = backend.threads](const Pointers& pointers) {
    for_blocks(s, threads, [&](const SoftmaxBlock& block, std::int64_t at) {
      softmax_backward_block(block, log, pointers.input<float>(0) + at, pointers.input<float>(1) + at,
                             pointers.output<float>(0) + at);
    });
  };
  return all_plain(request, loop_kernel(std::string(op.name()), 0, std::move(loop)));
}

}  // namespace

void add_softmax(Kernels& kernels) {
  kernels.add<ops::Softmax, prepare_softmax>();
  kernels.add<ops::SoftmaxBackward, prepare_softmax_backward>();
}

}  // namespace concord::cpu
