// The layers, by caffe.proto's fields and defaults.
#include "concord/caffe/layers.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/nn/local_norm.hpp"
#include "concord/ops/activations.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::caffe {
namespace {

using Pair = std::array<std::int64_t, 2>;

std::string name_in(const LayerCall& call) { return printable(call.layer.text("name")); }

void check_images(const LayerCall& call) {
  CONCORD_CHECK(call.bottoms[0].shape().rank() == 4, ShapeError, "{}: expected (N, C, H, W), got {}", name_in(call),
                call.bottoms[0].shape().str());
}

/// kernel_size, or kernel_h and kernel_w; likewise pad and stride.
Pair pair_of(const TextMessage& options, const std::string& name, const std::string& of_one, std::int64_t otherwise) {
  const std::vector<std::int64_t> both = options.whole_numbers(name);
  Pair pair{otherwise, otherwise};
  if (!both.empty()) pair = {both.front(), both.back()};
  return {options.whole(of_one + "_h", pair[0]), options.whole(of_one + "_w", pair[1])};
}

/// A vector along axis 1 of x.
Value along_channels(Value vector, Value x) {
  std::vector<std::int64_t> dims(x.shape().rank(), 1);
  dims[1] = vector.shape()[0];
  return reshape(vector, Shape(dims));
}

Value with_bias(const LayerCall& call, const TextMessage& options, Value y) {
  if (!options.is_on("bias_term", true)) return y;
  return y + along_channels(call.parameter("bias", Shape{y.shape()[1]}, true), y);
}

Value convolution(const LayerCall& call) {
  check_images(call);
  const TextMessage& options = call.layer.message("convolution_param");
  const Pair kernel = pair_of(options, "kernel_size", "kernel", 1);
  const std::int64_t outputs = options.whole("num_output", 0),
                     groups = std::max<std::int64_t>(options.whole("group", 1), 1);
  const std::int64_t inputs = call.bottoms[0].shape()[1];
  CONCORD_CHECK(inputs % groups == 0, ShapeError, "{}: {} channels in {} groups", name_in(call), inputs, groups);
  const Pair stride = pair_of(options, "stride", "stride", 1), padding = pair_of(options, "pad", "pad", 0);
  const Pair dilation = pair_of(options, "dilation", "dilation", 1);
  if (call.layer.text("type") == "Deconvolution") {
    const Value weights = call.parameter("weight", Shape{inputs, outputs / groups, kernel[0], kernel[1]}, true);
    return with_bias(call, options,
                     conv_transpose2d(call.bottoms[0], weights,
                                      {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups}));
  }
  const Value weights = call.parameter("weight", Shape{outputs, inputs / groups, kernel[0], kernel[1]}, true);
  return with_bias(
      call, options,
      conv2d(call.bottoms[0], weights, {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups}));
}

Value inner_product(const LayerCall& call) {
  const TextMessage& options = call.layer.message("inner_product_param");
  CONCORD_CHECK(options.whole("axis", 1) == 1 && !options.is_on("transpose", false), NotSupported,
                "{}: an InnerProduct with an axis or transposed", name_in(call));
  const Value x = flatten(call.bottoms[0]);
  const Value weights = call.parameter("weight", Shape{options.whole("num_output", 0), x.shape()[1]}, true);
  return with_bias(call, options, matmul(x, weights, false, true));
}

Value pooling(const LayerCall& call) {
  check_images(call);
  const TextMessage& options = call.layer.message("pooling_param");
  const std::string method = options.text("pool", "MAX");
  CONCORD_CHECK(method == "MAX" || method == "AVE", NotSupported, "{}: pooling {}", name_in(call), printable(method));
  const Value x = call.bottoms[0];
  if (options.is_on("global_pooling", false)) return method == "MAX" ? global_max_pool(x) : global_avg_pool(x);
  const Pair kernel = pair_of(options, "kernel_size", "kernel", 1), stride = pair_of(options, "stride", "stride", 1);
  const Pair padding = pair_of(options, "pad", "pad", 0);
  const bool rounds_up = options.text("round_mode", "CEIL") == "CEIL";
  if (method == "MAX") {
    return max_pool2d(x, {.kernel = kernel, .stride = stride, .padding = padding, .ceil_mode = rounds_up});
  }
  return avg_pool2d(x, {.kernel = kernel, .stride = stride, .padding = padding, .ceil_mode = rounds_up});
}

Value local_response_norm(const LayerCall& call) {
  const TextMessage& options = call.layer.message("lrn_param");
  using Options = nn::LocalResponseNormOptions;
  const bool is_within = options.text("norm_region", "ACROSS_CHANNELS") == "WITHIN_CHANNEL";
  nn::LocalResponseNorm layer(options.whole("local_size", 5), {.alpha = options.real("alpha", 1),
                                                               .beta = options.real("beta", 0.75F),
                                                               .k = is_within ? 1 : options.real("k", 1),
                                                               .region = is_within ? Options::Region::within_channel
                                                                                   : Options::Region::across_channels});
  return layer(call.bottoms[0]);
}

Value batch_norm(const LayerCall& call) {
  const Value x = call.bottoms[0];
  const float epsilon = call.layer.message("batch_norm_param").real("eps", 1e-5F);
  const Shape channels{x.shape()[1]};
  const Value mean = along_channels(call.parameter("running_mean", channels, false), x);
  const Value variance = along_channels(call.parameter("running_var", channels, false), x);
  return (x - mean) / sqrt(variance + epsilon);
}

Value scale(const LayerCall& call) {
  const TextMessage& options = call.layer.message("scale_param");
  CONCORD_CHECK(call.bottoms.size() == 1 && options.whole("axis", 1) == 1, NotSupported,
                "{}: a Scale of two blobs or along another axis than 1", name_in(call));
  const Value x = call.bottoms[0];
  const Value y = x * along_channels(call.parameter("weight", Shape{x.shape()[1]}, true), x);
  if (!options.is_on("bias_term", false)) return y;
  return y + along_channels(call.parameter("bias", Shape{x.shape()[1]}, true), x);
}

Value bias(const LayerCall& call) {
  const Value x = call.bottoms[0];
  return x + along_channels(call.parameter("weight", Shape{x.shape()[1]}, true), x);
}

Value rectifier(const LayerCall& call) {
  const float slope = call.layer.message("relu_param").real("negative_slope", 0);
  return slope == 0 ? relu(call.bottoms[0]) : leaky_relu(call.bottoms[0], slope);
}

Value parametric_rectifier(const LayerCall& call) {
  const Value x = call.bottoms[0];
  const bool is_shared = call.layer.message("prelu_param").is_on("channel_shared", false);
  const Value slope = call.parameter("weight", Shape{is_shared ? 1 : x.shape()[1]}, true);
  return prelu(x, is_shared ? slope : along_channels(slope, x));
}

Value power(const LayerCall& call) {
  const TextMessage& options = call.layer.message("power_param");
  CONCORD_CHECK(options.real("power", 1) == 1, NotSupported, "{}: a Power with an exponent", name_in(call));
  return call.bottoms[0] * options.real("scale", 1) + options.real("shift", 0);
}

Value elementwise(const LayerCall& call) {
  const TextMessage& options = call.layer.message("eltwise_param");
  const std::string operation = options.text("operation", "SUM");
  const std::vector<std::string> coefficients = options.texts("coeff");
  CONCORD_CHECK(coefficients.empty(), NotSupported, "{}: an Eltwise with coefficients", name_in(call));
  Value y = call.bottoms[0];
  for (std::size_t i = 1; i < call.bottoms.size(); ++i) {
    y = operation == "PROD"  ? y * call.bottoms[i]
        : operation == "MAX" ? maximum(y, call.bottoms[i])
                             : y + call.bottoms[i];
  }
  return y;
}

Value concatenation(const LayerCall& call) {
  const TextMessage& options = call.layer.message("concat_param");
  return concat(call.bottoms, options.whole("concat_dim", options.signed_whole("axis", 1)));  // the older name
}

Value flattened(const LayerCall& call) {
  const TextMessage& options = call.layer.message("flatten_param");
  const Shape& shape = call.bottoms[0].shape();
  const std::size_t first = shape.index_of(options.signed_whole("axis", 1)),
                    last = shape.index_of(options.signed_whole("end_axis", -1));
  CONCORD_CHECK(first <= last, ShapeError, "{}: a Flatten from axis {} to {}", name_in(call), first, last);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i > first && i <= last) {
      dims.back() *= shape.dims()[i];
    } else {
      dims.push_back(shape.dims()[i]);
    }
  }
  return reshape(call.bottoms[0], Shape(dims));
}
Value normalised(const LayerCall& call) {
  return softmax(call.bottoms[0], call.layer.message("softmax_param").signed_whole("axis", 1));
}
Value unchanged(const LayerCall& call) { return call.bottoms[0]; }
Value logistic(const LayerCall& call) { return sigmoid(call.bottoms[0]); }
Value hyperbolic_tangent(const LayerCall& call) { return tanh(call.bottoms[0]); }

struct NamedLayer {
  std::string_view type;
  LayerFunction function;
};

constexpr NamedLayer kLayers[] = {{"Convolution", convolution},
                                  {"Deconvolution", convolution},
                                  {"InnerProduct", inner_product},
                                  {"Pooling", pooling},
                                  {"LRN", local_response_norm},
                                  {"BatchNorm", batch_norm},
                                  {"Scale", scale},
                                  {"Bias", bias},
                                  {"ReLU", rectifier},
                                  {"PReLU", parametric_rectifier},
                                  {"Power", power},
                                  {"Eltwise", elementwise},
                                  {"Concat", concatenation},
                                  {"Flatten", flattened},
                                  {"Softmax", normalised},
                                  {"Sigmoid", logistic},
                                  {"TanH", hyperbolic_tangent},
                                  {"Dropout", unchanged},
                                  {"Split", unchanged}};

}  // namespace

LayerFunction find_layer(std::string_view type) {
  const auto* const found = std::ranges::find(kLayers, type, &NamedLayer::type);
  return found == std::end(kLayers) ? nullptr : found->function;
}

bool is_left_out(std::string_view type) {
  return type == "Data" || type == "ImageData" || type == "HDF5Data" || type == "MemoryData" || type == "Accuracy" ||
         type == "Silence" || type.ends_with("Loss");
}

}  // namespace concord::caffe
