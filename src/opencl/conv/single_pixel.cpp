// The passes of a convolution of images of one pixel, as in squeeze and excitation: products of dense matrices.
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/gemm/gemm.hpp"

namespace concord::opencl {
namespace {

std::string_view single_pixel_refusal(const Context&, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  if (s.options.groups != 1) return "it has groups";
  const bool is_single = s.src_plane() == 1 && s.taps() == 1 && s.dst_plane() == 1 && !s.is_padded();
  return is_single ? kNoRefusal : "the images have more than one pixel";
}

/// Images (N, C) and weights (O, C) are stored by rows.
Gemm single_pixel_gemm(const ops::ConvSizes& s, ConvPass pass) {
  if (pass == ConvPass::forward) return dense_gemm(s.n, s.o, s.c, true, true);
  if (pass == ConvPass::backward_data) return dense_gemm(s.n, s.c, s.o);
  Gemm gemm = dense_gemm(s.o, s.c, s.n, s.o == 1);  // a matrix with a single column is stored as a row
  gemm.a.buffer = input(1);
  gemm.b.buffer = input(0);
  return gemm;
}

PreparedKernel prepare_single_pixel(Context& context, const ConvProblem& problem) {
  Gemm gemm = single_pixel_gemm(problem.sizes, problem.pass);
  gemm.precision = problem.request.precision;
  gemm.epilogue = conv_epilogue_by_images(problem);
  return prepared(problem.request, prepare_gemm(context, gemm, problem.label));
}

}  // namespace

extern const ConvImplementation kSinglePixelConv{.name = "single-pixel",
                                                 .refusal = single_pixel_refusal,
                                                 .seconds = [](Context&, const ConvProblem&) { return 0.0; },
                                                 .prepare = prepare_single_pixel};

}  // namespace concord::opencl
