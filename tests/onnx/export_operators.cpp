// ONNX export of operators: their files, read again by the import, compute what the operators do on every device.
#include <functional>
#include <map>

#include "concord/onnx/export.hpp"
#include "concord/onnx/wire.hpp"
#include "concord/ops/elementary.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/grid_sample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/top_k.hpp"
#include "files.hpp"
#include "onnx/exported.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// One operator, or a few, that the export writes.
struct ExportedOperator {
  const char* name;
  TensorSpec input;
  std::function<Values(Value)> f;
  bool is_exact = true;  // the import makes the same operators of it
};

std::vector<ExportedOperator> exported_operators() {
  const TensorSpec image{DType::f32, {2, 4, 7, 9}}, matrix{DType::f32, {3, 5}}, tokens{DType::f32, {2, 6, 8}};
  const TensorSpec indices{DType::i32, {2, 3}};
  return {
      {"relu", matrix, [](Value x) { return Values(relu(x)); }},
      {"leaky relu", matrix, [](Value x) { return Values(leaky_relu(x, 0.2F)); }},
      {"elu", matrix, [](Value x) { return Values(elu(x, 0.7F)); }},
      {"celu", matrix, [](Value x) { return Values(celu(x, 0.7F)); }},
      {"selu", matrix, [](Value x) { return Values(selu(x)); }},
      {"gelu", matrix, [](Value x) { return Values(gelu(x)); }},
      {"gelu by tanh", matrix, [](Value x) { return Values(gelu_tanh(x)); }},
      {"silu", matrix, [](Value x) { return Values(silu(x)); }},
      {"mish", matrix, [](Value x) { return Values(mish(x)); }},
      {"hard sigmoid", matrix, [](Value x) { return Values(hard_sigmoid(4.0F * x)); }},
      {"hard swish", matrix, [](Value x) { return Values(hard_swish(4.0F * x)); }},
      {"clamp", matrix, [](Value x) { return Values(clamp(x, -0.5F, 1.5F)); }},
      {"hardtanh", matrix, [](Value x) { return Values(hardtanh(x)); }},
      {"softsign", matrix, [](Value x) { return Values(softsign(x)); }},
      {"prelu", image,
       [](Value x) {
         return Values(prelu(x, constants(x.graph(), {4, 1, 1})));
       }},
      {"angles", matrix,
       [](Value x) {
         return Values{atan2(x, transpose(reshape(x, {5, 3}), {1, 0})), atan2(abs(round(x)), x),
                       atan2(x, -abs(round(x)))};
       },
       false},
      {"coordinates", matrix,
       [](Value x) {
         return Values(pointwise("wave", {x}, scalar::input(0) + scalar::coordinate(0) * scalar::coordinate(1)));
       }},
      {"broadcast", matrix,
       [](Value x) {
         return Values(broadcast_to(reshape(x, {3, 1, 5}), {3, 2, 5}));
       }},
      {"integers", matrix, [](Value x) { return Values(cast(3.0F * x, DType::i32)); }},
      {"where", matrix, [](Value x) { return Values(where(relu(x), x, square(x))); }},
      {"two results", matrix,
       [](Value x) {
         const auto both =
             pointwise("both", {x}, {scalar::exp(scalar::input(0)), scalar::input(0) + 1.0F}, {DType::f32, DType::f32});
         return Values{both[0], both[1]};
       }},
      {"slice with steps", image, [](Value x) { return Values(slice(slice(x, 2, 1, 7, 2), 3, 2, -1)); }},
      {"pad", image,
       [](Value x) {
         return Values(pad(x, {0, 0, 1, 2}, {0, 1, 3, 0}, 0.25F));
       }},
      {"pad by reflection", image,
       [](Value x) {
         return Values(pad_spatial(x, PadMode::reflect, std::vector<std::int64_t>{1, 2, 3, 1}));
       }},
      {"flip, tile, repeat", image,
       [](Value x) {
         return Values(repeat_interleave(tile(flip(x, {2, 3}), {1, 2, 1, 1}), 2, 1));
       }},
      {"transpose and concat", image,
       [](Value x) {
         return Values(concat({transpose(x, {0, 1, 3, 2}), transpose(x, {0, 1, 3, 2})}, 1));
       }},
      {"products", tokens,
       [](Value x) {
         const Value square_ones = constants(x.graph(), {8, 8});
         return Values{matmul(x, square_ones), matmul(x, square_ones, false, true), matmul(x, x, true, false),
                       matmul(x, x, false, true)};
       }},
      {"product of matrices", matrix,
       [](Value x) {
         return Values{matmul(x, x, true), matmul(x, x, false, true)};
       }},
      {"reductions", image,
       [](Value x) {
         return Values{sum(x, {1, 3}), mean(x),     reduce_max(x, {2}), reduce_min(x, {0, 1}, true),
                       norm(x, {1}),   argmax(x, 1)};
       }},
      {"top k", matrix,
       [](Value x) {
         const TopKResult largest = top_k(x, 2), smallest = top_k(x, 3, 0, false);
         return Values{largest.values, largest.indices, smallest.values, smallest.indices};
       }},
      {"values alone of top k", matrix, [](Value x) { return Values(top_k(x, 2).values); }},
      {"indices alone of top k", matrix, [](Value x) { return Values(top_k(x, 2).indices); }},
      {"cumulative sums", matrix,
       [](Value x) {
         return Values{cumsum(x, 1), cumsum(x, 0, {.exclusive = true, .reverse = true})};
       }},
      {"softmax", image,
       [](Value x) {
         return Values{softmax(x, 1), log_softmax(x)};
       }},
      {"rows", tokens,
       [](Value x) {
         return Values{row_norm(x, 1).dst, row_norm_rms(x, 2).dst, row_norm(x, 2).dst};
       },
       false},
      {"statistics of rows", tokens,
       [](Value x) {
         const RowNormResult rows = row_norm(x, 2);
         return Values{rows.dst, rows.rstd, rows.mean};
       },
       false},
      {"gather", indices,
       [](Value x) {
         return Values(gather(constants(x.graph(), {8, 4}), x));
       }},
      {"gather along", indices,
       [](Value x) {
         return Values(gather_along(constants(x.graph(), {2, 8}), x, 1));
       }},
      {"one hot", indices, [](Value x) { return Values(one_hot(x, 5)); }},
      {"max pool", image,
       [](Value x) {
         return Values(max_pool2d(x, {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}, .ceil_mode = true}));
       }},
      {"positions of maxima", image,
       [](Value x) {
         const MaxPooled pooled = max_pool_with_indices(x, MaxPool2dOptions{});
         return Values{pooled.values, pooled.indices};
       }},
      {"mean pool", image,
       [](Value x) {
         return Values(avg_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}));
       }},
      {"mean pool without padding", image,
       [](Value x) {
         return Values(avg_pool2d(x, {.kernel = {3, 3}, .padding = {1, 1}, .count_include_pad = false}));
       }},
      {"mean pool with a divisor", image,
       [](Value x) {
         return Values(avg_pool2d(x, {.kernel = {2, 3}, .divisor_override = 5}));
       },
       false},
      {"adaptive pools", image,
       [](Value x) {
         const std::vector<std::int64_t> sizes{3, 4};
         return Values{adaptive_avg_pool(x, sizes), adaptive_max_pool(x, sizes), global_avg_pool(x),
                       global_max_pool(x)};
       }},
      {"nearest", image,
       [](Value x) {
         return Values{interpolate(x, {.scale_factor = {2}}), interpolate(x, {.size = {5, 13}})};
       }},
      {"nearest exactly", image,
       [](Value x) {
         const auto mode = Interpolation::nearest_exact;
         return Values{interpolate(x, {.scale_factor = {2}, .mode = mode}),
                       interpolate(x, {.size = {5, 13}, .mode = mode})};
       }},
      {"linear", image,
       [](Value x) {
         return Values{interpolate(x, {.size = {5, 13}, .mode = Interpolation::linear}),
                       interpolate(x, {.size = {14, 18}, .mode = Interpolation::linear, .align_corners = true})};
       },
       false},
      {"cubic", image,
       [](Value x) {
         return Values(interpolate(x, {.size = {9, 12}, .mode = Interpolation::cubic}));
       }},
      {"blur", image, [](Value x) { return Values(gaussian_blur(x, 3, 0.8)); }, false},
      {"convolution with bias and activation", image,
       [](Value x) {
         Graph& graph = x.graph();
         const Value y = pad(conv2d(x, full(graph, {4, 4, 3, 3}, 0.1F), {}), {0, 0, 1, 1}, {0, 0, 1, 1});
         return Values(silu(y + full(graph, {4, 1, 1}, 0.2F)) * 0.17F + x);
       }},
      {"windows of different sizes", image,
       [](Value x) {
         return Values(adaptive_avg_pool(x, std::vector<std::int64_t>{5, 12}));
       }},
      {"attention",
       {DType::f32, {2, 4, 6, 8}},
       [](Value x) {
         const Value keys = slice(x, 1, 0, 2);
         return Values{attention(x, keys, keys, {.causal = ops::Causal::first}),
                       attention(x, x, x, {.layout = ops::HeadLayout::tokens_first, .scale = 0.3F})};
       }},
  };
}

}  // namespace

TEST_CASE("exported operators compute what they did, on the CPU bit for bit", "[onnx][export]") {
  for (const ExportedOperator& one : exported_operators()) {
    for (const DevicePtr& device : devices()) {
      INFO(one.name << " on " << device->info().id);
      const double most = difference_of_file(formula(one.f), one.input, device);
      CHECK(most <= (is_cpu(device) && one.is_exact ? 0 : 3e-6));
    }
  }
}

TEST_CASE("a grid sample is one operator from version 16 on, of any batch, and a composition before",
          "[onnx][export]") {
  const auto sampled_with = [](const GridSampleOptions& options) {
    return formula([options](Value x) {  // the first channels are the places
      const Value places = transpose(
          slice(x, 1, 0, x.shape().rank() == 4 ? 2 : 3),
          x.shape().rank() == 4 ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 3, 4, 1});
      return Values(grid_sample(x, 0.8F * places, options));
    });
  };
  const auto operators_of = [](nn::Module& network, const Shape& shape, int opset, const std::string& batch) {
    const TemporaryFolder folder;
    onnx::save(folder / "sample.onnx", network, {.input = shape, .opset = opset, .batch = batch});
    std::map<std::string, int> operators;
    for (const onnx::NodeDef& node : onnx::read_model(folder / "sample.onnx").graph.nodes) ++operators[node.op_type];
    return operators;
  };
  const Shape image{2, 4, 5, 6}, volume{2, 3, 4, 3, 5};
  for (const GridInterpolation mode :
       {GridInterpolation::bilinear, GridInterpolation::nearest, GridInterpolation::bicubic}) {
    for (const GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection}) {
      const GridSampleOptions options{mode, padding, padding == GridPadding::border};
      const auto network = sampled_with(options);
      for (const auto& [shape, opset, batch] : std::vector<std::tuple<Shape, int, std::string>>{
               {image, 16, "N"}, {image, 20, ""}, {image, 13, ""}, {volume, 20, "N"}, {volume, 17, ""}}) {
        if (mode == GridInterpolation::bicubic && shape.rank() == 5) continue;
        INFO("mode " << static_cast<int>(mode) << ", padding " << static_cast<int>(padding) << ", " << shape.str()
                     << ", version " << opset);
        auto operators = operators_of(*network, shape, opset, batch);
        const bool is_one = opset >= (shape.rank() == 4 ? 16 : 20);
        CHECK(operators["GridSample"] == (is_one ? 1 : 0));
        CHECK((operators["Gather"] == 0) == is_one);
        CHECK(difference_of_file(network, {DType::f32, shape}, devices().front(), {.opset = opset, .batch = batch}) <
              3e-6);
      }
    }
  }
}

TEST_CASE("an exported file leaves out optional outputs alone", "[onnx][export]") {
  const auto outputs_of = [](const char* op, const TensorSpec& input, std::function<Values(Value)> f) {
    const TemporaryFolder folder;
    onnx::save(folder / "one.onnx", *formula(std::move(f)), {.input = input.shape});
    const onnx::Model model = onnx::read_model(folder / "one.onnx");
    const auto found = std::ranges::find(model.graph.nodes, op, &onnx::NodeDef::op_type);
    REQUIRE(found != model.graph.nodes.end());
    return found->outputs.size();
  };
  CHECK(outputs_of("TopK", {DType::f32, {3, 5}}, [](Value x) { return Values(top_k(x, 2).values); }) == 2);
  CHECK(outputs_of("MaxPool", {DType::f32, {1, 2, 6, 6}}, [](Value x) { return Values(max_pool2d(x, {})); }) == 1);
}
