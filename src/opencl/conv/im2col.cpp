// The passes of a convolution by im2col and CLBlast, image by image and group by group: the reference of the implicit
// GEMM.
#include <algorithm>
#include <cmath>

#include "concord/core/debug_options.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/gemm/clblast.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// The stages of one convolution, and what they have in common.
class Im2col {
 public:
  Im2col(Context& context, const ops::ConvSizes& sizes)
      : context_(context),
        s_(sizes),
        group_c_(s_.group_c()),
        group_o_(s_.group_o()),
        k_(group_c_ * s_.taps()),
        src_(s_.src_plane()),
        dst_(s_.dst_plane()),
        columns_bytes_(aligned(size(k_ * dst_) * sizeof(float))) {}

  /// Calls `image` with the places of every image and group in src, weights and dst.
  template <class Image>
  void each(const Image& image) {
    for (std::int64_t n = 0; n < s_.n; ++n) {
      for (std::int64_t g = 0; g < s_.options.groups; ++g) {
        image(n, (n * s_.c + g * group_c_) * src_, g * group_o_ * k_, (n * s_.o + g * group_o_) * dst_);
      }
    }
  }
  void unfold(const BufferArgument& src, std::int64_t image) {
    add("im2col_unfold", {src, workspace(), static_cast<std::uint64_t>(image)}, {size(dst_), size(k_), 1});
  }
  void fold(const BufferArgument& src, std::int64_t image) {
    add("im2col_fold", {workspace(), src, static_cast<std::uint64_t>(image)}, {size(src_), size(group_c_), 1});
  }
  /// weights (group_o, k) or their transpose × …; sizes in the order of ClblastProduct.
  void multiply(ClblastProduct product) {
    product.workspace_begin = columns_bytes_;
    temporary_ = std::max(temporary_, clblast_workspace(context_, product));
    stages_.emplace_back(clblast_stage(context_, product));
  }
  [[nodiscard]] std::unique_ptr<Kernel> kernel(const std::string& name) {
    return std::make_unique<StagedKernel>(context_, name, std::move(stages_), columns_bytes_ + temporary_);
  }
  [[nodiscard]] std::size_t o() const { return size(group_o_); }
  [[nodiscard]] std::size_t k() const { return size(k_); }
  [[nodiscard]] std::size_t dst() const { return size(dst_); }

 private:
  void add(const std::string& function, std::vector<Argument> arguments, std::array<std::size_t, 3> global) {
    const ops::ConvOptions& o = s_.options;
    const ops::Spatial src{s_.d, s_.h, s_.w}, kernel{s_.kd, s_.kh, s_.kw}, dst{s_.od, s_.oh, s_.ow};
    for (const ops::Spatial& values : {src, kernel, dst, o.stride, o.padding, o.dilation}) {
      for (const std::int64_t value : values) arguments.emplace_back(static_cast<std::int32_t>(value));
    }
    stages_.emplace_back(Stage{context_.program("conv/im2col.cl"), function, std::move(arguments), global, {0, 0, 0}});
  }

  Context& context_;
  const ops::ConvSizes s_;
  std::int64_t group_c_, group_o_, k_, src_, dst_;
  std::size_t columns_bytes_, temporary_ = 0;
  std::vector<StagedKernel::AnyStage> stages_;
};

BufferArgument at(BufferArgument argument, std::int64_t element) {
  argument.extra_bytes += size(element) * sizeof(float);
  return argument;
}

std::unique_ptr<Kernel> im2col_forward(Context& context, const ops::ConvSizes& sizes) {
  Im2col conv(context, sizes);
  conv.each([&](std::int64_t, std::int64_t src, std::int64_t weights, std::int64_t dst) {
    conv.unfold(input(0), src);
    conv.multiply({false, false, conv.o(), conv.dst(), conv.k(), conv.k(), conv.dst(), conv.dst(), 0,
                   at(input(1), weights), workspace(), at(output(0), dst), 0});
  });
  return conv.kernel("conv im2col");
}

std::unique_ptr<Kernel> im2col_backward_data(Context& context, const ops::ConvSizes& sizes) {
  Im2col conv(context, sizes);
  conv.each([&](std::int64_t, std::int64_t src, std::int64_t weights, std::int64_t dst) {
    conv.multiply({true, false, conv.k(), conv.dst(), conv.o(), conv.k(), conv.dst(), conv.dst(), 0,
                   at(input(1), weights), at(input(0), dst), workspace(), 0});
    conv.fold(output(0), src);
  });
  return conv.kernel("conv_backward_data im2col");
}

std::unique_ptr<Kernel> im2col_backward_weights(Context& context, const ops::ConvSizes& sizes) {
  Im2col conv(context, sizes);
  conv.each([&](std::int64_t image, std::int64_t src, std::int64_t weights, std::int64_t dst) {
    conv.unfold(input(0), src);
    conv.multiply({false, true, conv.o(), conv.k(), conv.dst(), conv.dst(), conv.dst(), conv.k(),
                   image == 0 ? 0.0F : 1.0F, at(input(1), dst), workspace(), at(output(0), weights), 0});
  });
  return conv.kernel("conv_backward_weights im2col");
}

std::string_view im2col_refusal(const Context&, const ConvProblem& problem) {
  if (problem.epilogue != nullptr) return "it applies no epilogue";
  return debug_option("conv") == "im2col" ? kNoRefusal : "only CONCORD_DEBUG=conv=im2col asks for it";
}

PreparedKernel prepare_im2col(Context& context, const ConvProblem& problem) {
  const auto kernel_of = problem.pass == ConvPass::forward         ? im2col_forward
                         : problem.pass == ConvPass::backward_data ? im2col_backward_data
                                                                   : im2col_backward_weights;
  return prepared(problem.request, kernel_of(context, problem.sizes));
}

}  // namespace

extern const ConvImplementation kIm2colConv{.name = "im2col",
                                            .refusal = im2col_refusal,
                                            .seconds = [](Context&, const ConvProblem&) -> double { return INFINITY; },
                                            .prepare = prepare_im2col};

}  // namespace concord::opencl
