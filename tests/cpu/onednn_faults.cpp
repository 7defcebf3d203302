// What oneDNN gets wrong is not taken.
#include "concord/ops/conv.hpp"
#include "concord/ops/matmul.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

/// The weights' gradient of a 1x1 convolution by plain loops.
std::vector<double> expected(const Tensor& src, const Tensor& diff_dst, const ops::ConvSizes& s) {
  std::vector<double> sums(static_cast<std::size_t>(s.o * s.c));
  const auto x = src.values<float>(), d = diff_dst.values<float>();
  const auto& stride = s.options.stride;
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t o = 0; o < s.o; ++o) {
      for (std::int64_t c = 0; c < s.c; ++c) {
        for (std::int64_t y = 0; y < s.oh; ++y) {
          for (std::int64_t z = 0; z < s.ow; ++z) {
            const auto to = static_cast<std::size_t>(((n * s.o + o) * s.oh + y) * s.ow + z);
            const auto from = static_cast<std::size_t>(((n * s.c + c) * s.h + y * stride[1]) * s.w + z * stride[2]);
            sums[static_cast<std::size_t>(o * s.c + c)] += static_cast<double>(x[from]) * d[to];
          }
        }
      }
    }
  }
  return sums;
}

}  // namespace

/// oneDNN 2.6 writes beyond its memory for some of these.
TEST_CASE("the weights' gradient of 1x1 convolutions with a stride is right for any channels", "[cpu]") {
  for (const std::int64_t channels : {1, 3, 8, 11, 16, 20, 32}) {
    for (const ops::Spatial& stride : {ops::Spatial{1, 2, 2}, ops::Spatial{1, 2, 1}, ops::Spatial{1, 1, 2}}) {
      for (const Shape& size : {Shape{6, 12}, Shape{12, 6}, Shape{14, 14}}) {
        INFO(channels << " channels, stride " << stride[1] << "x" << stride[2] << ", " << size.str());
        const Tensor src = normal_tensor(Shape{3, channels, size[0], size[1]}, 1);
        const Shape weights{5, channels, 1, 1};
        ops::ConvOptions options;
        options.stride = stride;
        const ops::ConvSizes sizes = conv_sizes(src.shape(), weights, options);
        const Tensor diff_dst = normal_tensor(Shape{3, 5, sizes.oh, sizes.ow}, 2);
        const ops::ConvBackwardWeights op(options, weights);
        const Tensor got = run_kernel(op, {src, diff_dst}, true).outputs[0];
        const std::vector<double> right = expected(src, diff_dst, sizes);
        for (std::size_t i = 0; i < right.size(); ++i) {
          REQUIRE(got.values<float>()[i] == Approx(right[i]).margin(1e-3));
        }
      }
    }
  }
}

/// oneDNN 2.6 divides by zero for multiples of 2^32.
TEST_CASE("sizes that oneDNN does not count are refused by name", "[cpu]") {
  const ops::Matmul op(false, false);
  for (const std::int64_t rows : {std::int64_t{1} << 31, std::int64_t{1} << 33}) {
    const TensorSpec x{DType::f32, Shape{rows, 4}}, w{DType::f32, Shape{4, 4}};
    const KernelRequest request{&op, {x, w}, {nullptr, nullptr}, {x}};
    CHECK_THROWS_WITH(Device::open("cpu")->prepare(request),
                      contains("matmul on the CPU") && contains(std::to_string(rows)));
  }
}

}  // namespace concord::test
