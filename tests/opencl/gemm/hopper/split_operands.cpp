// Operands for the copy engine: which products it serves, how they are walked and cut, and what it is told of a tensor.
#include "concord/opencl/gemm/hopper/split_operands.hpp"

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

using namespace opencl;

ops::ConvSizes sizes_of(std::int64_t channels, std::int64_t stride, const Shape& kernel = {3, 3}) {
  return ops::conv_sizes({4, channels, 14, 10}, {96, channels, kernel[0], kernel[1]},
                         {.stride = {1, stride, stride}, .padding = {0, 1, 1}, .padding_after = {0, 1, 1}});
}

}  // namespace

TEST_CASE("the passes of a convolution are walked tap by tap", "[opencl][gemm]") {
  const ops::ConvSizes s = sizes_of(40, 1);
  const PlaneForm forward = plane_form(conv_forward_gemm(s), 32);
  CHECK(forward.kind == PlaneForm::Kind::image);
  CHECK(forward.rows == 4 * 14 * 10);
  CHECK(forward.tiles_k == 9 * 2);  // 40 channels are two tiles of 32
  CHECK(forward.images == 4);
  const PlaneForm data = plane_form(conv_backward_data_gemm(s), 32);
  CHECK(data.kind == PlaneForm::Kind::image);
  CHECK(data.tiles_k == 9 * 3);
  const PlaneForm weights = plane_form(conv_backward_weights_gemm(s), 32);
  CHECK(weights.kind == PlaneForm::Kind::image_turned);
  CHECK(weights.rows == 9 * 64);  // a tap's channels fill whole blocks
  CHECK(weights.tiles_k == (4 * 14 * 10 + 31) / 32);
}

TEST_CASE("what the copy engine cannot walk is left to others", "[opencl][gemm]") {
  CHECK(supports_packing(conv_forward_gemm(sizes_of(40, 2))));
  CHECK(supports_packing(conv_backward_weights_gemm(sizes_of(40, 2))));
  CHECK_FALSE(supports_packing(conv_backward_data_gemm(sizes_of(40, 2))));  // steps between pixels
  for (const opencl::Gemm& phase : conv_polyphase(sizes_of(40, 2)).products) CHECK(supports_packing(phase));
  const ops::ConvSizes volume = ops::conv_sizes({2, 8, 6, 6, 6}, {8, 8, 3, 3, 3}, {.rank = 3});
  CHECK_FALSE(supports_packing(conv_forward_gemm(volume)));
  const ops::ConvSizes far = ops::conv_sizes({1, 8, 700, 700}, {8, 8, 3, 3}, {.dilation = {1, 300, 300}});
  CHECK_FALSE(supports_packing(conv_forward_gemm(far)));
  CHECK(supports_packing(dense_gemm(65535, 64, 64)));
  CHECK_FALSE(supports_packing(dense_gemm(65536, 64, 64)));  // more rows than a launch has groups
  opencl::Gemm groups = conv_backward_weights_gemm(
      ops::conv_sizes({3, 80, 7, 5}, {80, 40, 3, 3}, {.padding = {0, 1, 1}, .padding_after = {0, 1, 1}, .groups = 2}));
  CHECK(supports_packing(groups));
  groups.precision = Precision::bf16;
  CHECK_FALSE(supports_packing(groups));  // its last places are the next group's
}

TEST_CASE("scaled products have room for what they fall back to", "[opencl][gemm]") {
  opencl::Gemm weights = conv_backward_weights_gemm(sizes_of(40, 1));
  weights.precision = Precision::tf32;
  CHECK_FALSE(supports_packing(weights));  // the units read 32-bit numbers with k inside alone
  weights.is_scaled = true;
  CHECK(supports_packing(weights));
  const PlaneNumbers tf32 = plane_numbers(weights);
  CHECK(tf32.planes == 3);
  CHECK(tf32.multiplied_planes == 1);
  CHECK(tf32.products == 1);
  weights.precision = Precision::fp32;
  const PlaneNumbers fp32 = plane_numbers(weights);
  CHECK(fp32.planes == 3);
  CHECK(fp32.multiplied_planes == 2);
  CHECK(fp32.products == 3);
  weights.precision = Precision::bf16;
  CHECK_FALSE(can_be_scaled(weights));
}

TEST_CASE("a product whose planes are too large is cut into slices of its rows", "[opencl][gemm]") {
  CHECK(plane_slices(dense_gemm(4096, 4096, 4096)).size() == 1);
  const opencl::Gemm large = dense_gemm(8192, 768, 50257);
  CHECK(supports_packing(large));
  const std::vector<opencl::Gemm> slices = plane_slices(large);
  CHECK(slices.size() == 3);
  std::int64_t rows = 0;
  for (const opencl::Gemm& slice : slices) {
    CHECK(slice.a.buffer.extra_bytes == static_cast<std::size_t>(rows * 50257) * sizeof(float));
    CHECK(slice.c.buffer.extra_bytes == static_cast<std::size_t>(rows * 768) * sizeof(float));
    rows += slice.m;
  }
  CHECK(rows == large.m);
  opencl::Gemm with_epilogue = large;
  with_epilogue.epilogue.text = "#define EPILOGUE(value, z, m, n_outer, n_inner) (value)";
  CHECK(plane_slices(with_epilogue).size() == 1);
  CHECK_FALSE(supports_packing(with_epilogue));
  CHECK_FALSE(supports_packing(dense_gemm(64, 50257, 50257)));  // nothing to cut in its right operand
}

TEST_CASE("packed matrices are padded to whole tiles, of lines and of k", "[opencl][gemm]") {
  const opencl::Gemm gemm = dense_gemm(100, 50, 70);
  const PlaneSizes sizes = plane_sizes(gemm, plane_form(gemm, 32), {128, 64, 64});  // 32 bf16 numbers of a line
  CHECK(sizes.right == 128 * 96);
  CHECK(sizes.left == 128 * 96);
  const PlaneSizes of_lines = plane_sizes(gemm, plane_form(gemm, 32), {1, 1, 64});
  CHECK(of_lines.right == 50 * 96);
  CHECK(of_lines.left == 100 * 96);
}

TEST_CASE("tensor maps hold sizes, strides, boxes and corners", "[opencl][gemm]") {
  const std::array<std::int64_t, 3> size{100, 70, 6}, box{32, 128, 1};
  const std::array<std::int64_t, 2> strides{208, 208 * 70};
  const opencl::TensorMap map = opencl::box_map({MapNumber::bf16, size, strides}, box);
  CHECK(map[0] == 0);
  CHECK(map[2] == ((2U << 4U) | (10U << 7U) | (2U << 13U) | (2U << 17U)));
  CHECK(map[3] == 13);
  CHECK(map[4] == 13 * 70);
  CHECK((map[8] == 99 && map[9] == 69 && map[10] == 5));
  CHECK(map[13] >> 24U == 31);
  CHECK(map[14] == 127);
  CHECK(map[16] == 32 * 2 * 128);

  const std::array<std::int64_t, 4> image{64, 10, 14, 12};
  const std::array<std::int64_t, 3> image_strides{128, 1280, 1280 * 14};
  const opencl::MapTensor tensor{MapNumber::bf16, image, image_strides};
  const opencl::MapPlaces places{64, 128, {10, 14}, {-1, -1}, {1, 1}};
  CHECK(map_holds(tensor, places));
  const opencl::TensorMap patches = opencl::places_map(tensor, places);
  CHECK((patches[2] & 1U) == 1);
  CHECK((patches[2] >> 13U & 3U) == 3);  // rows of 128 bytes
  CHECK(patches[14] == 0xffffffffU);     // a pixel of padding on every side
  CHECK(patches[15] == 127);
  CHECK_FALSE(map_holds(tensor, {64, 128, {10, 14}, {-129, 0}, {1, 1}}));
  CHECK_FALSE(map_holds(tensor, {64, 128, {10, 14}, {0, 0}, {9, 1}}));
}

}  // namespace concord::test
