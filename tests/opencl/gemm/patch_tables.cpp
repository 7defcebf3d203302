// The tables of patches against the patch's own definition, element by element, for every pass of a convolution.
#include "concord/opencl/gemm/patch_tables.hpp"

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

using opencl::Gemm;
using opencl::PatchPart;

struct Pixel {
  std::int64_t plane, axis[3];
};

Pixel part_of(const PatchPart& part, std::int64_t i) {
  const std::int64_t in_block = i % part.block;
  return {i / part.block * part.plane,
          {in_block / part.page * part.move[0], in_block % part.page / part.line * part.move[1],
           in_block % part.line * part.move[2]}};
}

/// Where B(k, n) lies, or -1 outside the image.
std::int64_t place_of(const Gemm& gemm, std::int64_t k, std::int64_t n) {
  const Pixel a = part_of(gemm.patch.k, k), b = part_of(gemm.patch.n, n);
  std::int64_t at = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t sum = a.axis[axis] + b.axis[axis] + gemm.patch.shift[axis], step = gemm.patch.step[axis];
    if (sum < 0 || sum % step != 0 || sum / step >= gemm.patch.size[axis]) return -1;
    at = at * gemm.patch.size[axis] + sum / step;
  }
  return a.plane + b.plane + at;
}

std::int64_t place_by_tables(const Gemm& gemm, const opencl::PatchTables& tables, std::int64_t k, std::int64_t n) {
  const std::int64_t tap_index = gemm.b.along_k ? n : k, place_index = gemm.b.along_k ? k : n;
  const auto& tap = tables.taps.at(static_cast<std::size_t>(tap_index));
  const auto& place = tables.places.at(static_cast<std::size_t>(place_index % tables.block));
  if ((tap[1] & place[1]) != tap[1]) return -1;
  return tap[0] + place[0] + place_index / tables.block * tables.plane;
}

ops::ConvSizes sizes_of(const Shape& src, const Shape& weights, const Conv2dOptions& options) {
  Graph graph;
  const Value dst = conv2d(graph.input("x", {DType::f32, src}), graph.input("w", {DType::f32, weights}), options);
  const std::vector<TensorSpec> inputs{{DType::f32, src}, {DType::f32, weights}};
  return dynamic_cast<const ops::Conv&>(*dst.node().op).sizes(inputs);
}

}  // namespace

TEST_CASE("tables of taps and places find what the patch says", "[opencl][gemm]") {
  struct Case {
    Shape src, weights;
    Conv2dOptions options;
  };
  const std::vector<Case> cases{{{2, 3, 9, 7}, {5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
                                {{2, 4, 8, 11}, {6, 2, 3, 2}, {{2, 2}, {1, 0}, {1, 1}, 2}},
                                {{1, 2, 10, 9}, {4, 2, 3, 3}, {{1, 2}, {2, 2}, {2, 2}, 1}},
                                {{2, 8, 5, 5}, {9, 8, 1, 1}, {{3, 2}, {0, 0}, {1, 1}, 1}}};
  for (const Case& c : cases) {
    const ops::ConvSizes sizes = sizes_of(c.src, c.weights, c.options);
    std::vector<Gemm> passes{opencl::conv_forward_gemm(sizes), opencl::conv_backward_data_gemm(sizes),
                             opencl::conv_backward_weights_gemm(sizes)};
    const std::vector<Gemm> phases = opencl::conv_polyphase(sizes).products;
    passes.insert(passes.end(), phases.begin(), phases.end());
    for (const Gemm& gemm : passes) {
      INFO(c.src.str() << " * " << c.weights.str() << " " << c.options.str());
      REQUIRE(opencl::has_patch_tables(gemm));
      const opencl::PatchTables tables = opencl::patch_tables(gemm);
      std::int64_t wrong = 0;
      for (std::int64_t k = 0; k < gemm.k; ++k) {
        for (std::int64_t n = 0; n < gemm.n; ++n) wrong += place_of(gemm, k, n) != place_by_tables(gemm, tables, k, n);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("kernels of too many rows and columns have no tables", "[opencl][gemm]") {
  CHECK_FALSE(opencl::has_patch_tables(opencl::conv_forward_gemm(sizes_of({1, 1, 40, 40}, {1, 1, 20, 20}, {}))));
}

}  // namespace concord::test
