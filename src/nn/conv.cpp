// Conv2d: the convolution and its bias.
#include "concord/nn/conv.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& options)
    : in_(in), options_(options) {
  CONCORD_CHECK(in > 0 && out > 0 && kernel.rows > 0 && kernel.columns > 0, ArgumentError,
                "Conv2d: channels and kernel must be positive, got {} → {}, {}x{}", in, out, kernel.rows,
                kernel.columns);
  CONCORD_CHECK(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0, ArgumentError,
                "Conv2d: {} groups do not divide {} and {} channels", options.groups, in, out);
  const Shape shape{out, in / options.groups, kernel.rows, kernel.columns};
  weight_ = make_parameter(shape, init::default_weights(shape));
  if (options.bias) bias_ = make_parameter(Shape{out}, init::default_bias(shape));
}

Value Conv2d::forward(Value x) {
  Graph& graph = x.graph();
  CONCORD_CHECK(x.shape().rank() == 4 && x.shape()[1] == in_, ShapeError,
                "{}: expected [batch, {}, rows, columns], got {}", graph.scoped("conv2d", '/'), in_, x.shape().str());
  const ops::ConvOptions options{options_.stride, options_.padding, options_.dilation, options_.groups};
  const Value product = conv2d(x, parameter(graph, weight_, "weight"), options);
  if (!bias_) return product;
  const Value bias = parameter(graph, bias_, "bias");
  return product + reshape(bias, Shape{bias.shape()[0], 1, 1});
}

}  // namespace concord::nn
