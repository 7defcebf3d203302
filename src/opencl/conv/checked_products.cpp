// Small convolutions as products.
#include "concord/opencl/conv/checked_products.hpp"

#include <algorithm>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/polyphase.hpp"

namespace concord::opencl {
namespace {

void add_convolution(std::vector<CheckedProduct>& products, const Shape& src, const Shape& weights,
                     std::int64_t stride) {
  const ops::ConvSizes s =
      ops::conv_sizes(src, weights, {.stride = {1, stride, stride}, .padding = {0, 1, 1}, .padding_after = {0, 1, 1}});
  const std::int64_t images = src.elements(), kernels = weights.elements(), results = s.n * s.o * s.dst_plane();
  CheckedProduct forward{conv_forward_gemm(s), kernels, images, results};
  CheckedProduct data{conv_backward_data_gemm(s), kernels, results, images};
  CheckedProduct kernel{conv_backward_weights_gemm(s), results, images, kernels};
  for (CheckedProduct* product : {&forward, &data, &kernel}) {
    product->gemm.a.buffer = input(0);
    product->gemm.b.buffer = input(1);
    products.push_back(*product);
  }
  if (stride == 1) return;
  // The phase of most taps, its weights alone as left operand.
  std::vector<Gemm> phases = conv_polyphase(s).products;
  Gemm& phase = *std::ranges::max_element(phases, {}, &Gemm::k);
  phase.a.buffer = input(0);
  phase.b.buffer = input(1);
  phase.before_bytes = 0;
  products.push_back({phase, phase.m * phase.k, results, images});
}

}  // namespace

std::vector<CheckedProduct> conv_products_to_check() {
  std::vector<CheckedProduct> list;
  add_convolution(list, {3, 12, 9, 8}, {70, 12, 3, 3}, 1);
  add_convolution(list, {2, 9, 11, 10}, {130, 9, 3, 3}, 2);
  add_convolution(list, {2, 72, 5, 4}, {66, 72, 3, 3}, 1);
  return list;
}

}  // namespace concord::opencl
