// ONNX export: files of operators and networks, read again by the import, compute what the network does on every
// device. tests/onnx/export_networks.py runs the same networks with onnxruntime.
#include "concord/onnx/export.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "concord/onnx/network.hpp"
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

/// A network of one function.
struct Formula : nn::Module {
  std::function<Values(Value)> formula;
  explicit Formula(std::function<Values(Value)> f) : formula(std::move(f)) {}
  Values forward_values(const Values& inputs) override { return formula(inputs.only()); }
};

std::shared_ptr<nn::Module> formula(std::function<Values(Value)> f) { return std::make_shared<Formula>(std::move(f)); }

constexpr double kOtherBits = 1e-30;  // a difference in signs of zeros alone

/// The largest difference of the network and its file on a device; 0 if they have the same bits.
double difference_of_file(const std::shared_ptr<nn::Module>& network, const TensorSpec& spec, const DevicePtr& device,
                          onnx::ExportOptions options = {}, int classes = 8) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "network.onnx";
  options.input = spec.shape;
  options.dtype = spec.dtype;
  options.seed = 3;
  onnx::save(file, *network, options);
  const Tensor input = random_input(spec, classes);
  Session own(network, device, {.seed = 3}), imported(onnx::load(file), device);
  const std::vector<std::string> names = network->input_names();
  const NamedTensors expected = own.run({{names.empty() ? "input" : names[0], input}});
  const NamedTensors given = imported.run({{"input", input}});
  REQUIRE(given.size() == expected.size());
  double most = 0;
  for (const auto& [name, tensor] : expected) {
    const bool has_own_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
    const std::string there = has_own_name ? name : expected.size() == 1 ? "output" : "output" + name;
    REQUIRE(given.contains(there));
    if (std::ranges::equal(given.at(there).bytes(), tensor.bytes())) continue;
    most = std::max({most, difference(given.at(there), tensor), kOtherBits});
  }
  return most;
}

/// Random weights where all initial values are 0, as in the head of a vision transformer: else its outputs are 0.
void give_head_weights(nn::Module& network, const TensorSpec& batch) {
  Graph graph;
  graph.set_training(false);
  static_cast<void>(network(graph.input("input", batch)));
  for (const VariablePtr& variable : graph.variables()) {
    const bool is_zero =
        variable->init.kind != Initializer::Kind::uniform && variable->init.a == 0 && variable->init.b == 0;
    if (is_zero && variable->spec.shape.rank() == 2) variable->init = nn::init::normal(0, 0.02);
  }
}

/// One operator, or a few, that the export writes.
struct ExportedOperator {
  const char* name;
  TensorSpec input;
  std::function<Values(Value)> f;
  bool is_exact = true;  // the import makes the same operators of it
};

bool is_cpu(const DevicePtr& device) { return device->info().id == "cpu"; }

Value constants(Graph& graph, Shape shape) { return full(graph, std::move(shape), 0.5F); }

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

TEST_CASE("exported networks compute what they did, of any batch, on the CPU bit for bit", "[onnx][export]") {
  for (const char* name : {"mlp", "lenet", "resnet20", "char_lstm", "gpt_tiny", "unet", "denoising_autoencoder"}) {
    const models::Model& model = models::find(name);
    for (const DevicePtr& device : devices()) {
      for (const bool is_free : {false, true}) {
        INFO(name << " on " << device->info().id << (is_free ? " with a free batch" : ""));
        const auto network = models::make(name, {.input = model.least});
        onnx::ExportOptions options;
        if (is_free) options.batch = "N";
        const double most = difference_of_file(network, models::batch_of(model, model.least, 5), device, options);
        CHECK(most <= (is_cpu(device) ? 0 : 1e-5));
      }
    }
  }
}

TEST_CASE("all networks are exported and imported again, on the CPU bit for bit", "[.][slow][export_all]") {
  for (const models::Model& model : models::all()) {
    const auto network = models::make(model.name, {.input = model.least});
    give_head_weights(*network, models::batch_of(model, model.least, 2));
    for (const DevicePtr& device : devices()) {
      INFO(model.name << " on " << device->info().id);
      const double most = difference_of_file(network, models::batch_of(model, model.least, 2), device, {.batch = "N"});
      CHECK(most <= (is_cpu(device) ? 0 : 1e-4));
    }
  }
}

TEST_CASE("recurrent layers are exported with the order of ONNX's gates", "[onnx][export]") {
  const TensorSpec sequence{DType::f32, {5, 3, 4}};  // (T, N, input)
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const double most = is_cpu(device) ? 0 : 3e-6;
    CHECK(difference_of_file(std::make_shared<nn::LSTM>(4, 6, nn::RecurrentOptions{.bidirectional = true}), sequence,
                             device) <= most);
    CHECK(difference_of_file(std::make_shared<nn::GRU>(4, 6, nn::RecurrentOptions{.num_layers = 2}), sequence, device) <
          3e-6);
    CHECK(difference_of_file(std::make_shared<nn::RNN>(4, 6, nn::RNNOptions{.nonlinearity = nn::RnnNonlinearity::relu}),
                             sequence, device) <= most);
    // Gates that are no product with weights.
    const auto gates = formula([](Value x) {
      const Value weights = constants(x.graph(), {8, 2}), first = constants(x.graph(), {3, 2});
      const RecurrentResult result = recurrent(
          ops::RecurrentCell::lstm, {.gates_x = concat({x, x}, 2), .weights = weights, .h0 = first, .c0 = first});
      return Values{result.y, result.hn, result.cn};
    });
    CHECK(difference_of_file(gates, sequence, device) <= most);
  }
}

TEST_CASE("an exported file has ONNX's own operators and the names of the parameters", "[onnx][export]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "resnet20.onnx";
  onnx::save(file, *models::make("resnet20"), {.input = {1, 3, 32, 32}, .batch = "N", .outputs = {"logits"}});
  const onnx::Model model = onnx::read_model(file);
  CHECK(model.producer == "concord");
  CHECK(model.opsets.at(0).version == 17);
  CHECK(model.graph.outputs.at(0).name == "logits");
  REQUIRE(model.graph.inputs.at(0).shape);
  CHECK(model.graph.inputs[0].shape->at(0).name == "N");
  std::map<std::string, int> operators;
  for (const onnx::NodeDef& node : model.graph.nodes) ++operators[node.op_type];
  CHECK(operators["Conv"] == 21);  // two of them in shortcuts
  CHECK(operators["BatchNormalization"] == 21);
  CHECK(operators["Gemm"] == 1);
  CHECK(operators["Mul"] == 0);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(model.graph.initializers, name, &onnx::TensorProto::name) !=
           model.graph.initializers.end();
  };
  Graph graph;
  graph.set_training(false);
  static_cast<void>((*models::make("resnet20"))(graph.input("x", {DType::f32, {1, 3, 32, 32}})));
  for (const VariablePtr& variable : graph.variables()) CHECK(has(variable->name));
}

TEST_CASE("an export names all operators that ONNX does not have, at once", "[onnx][export]") {
  const TemporaryFolder folder;
  Formula network([](Value x) {
    const Value noise = random_uniform(x.graph(), x.shape());
    return Values(x + noise + random_normal(x.graph(), x.shape()));
  });
  CHECK_THROWS_WITH(onnx::save(folder / "noise.onnx", network, {.input = {2, 3}}),
                    contains("random_uniform") && contains("random_normal"));
  CHECK(!std::filesystem::exists(folder / "noise.onnx"));
  Formula joined([](Value x) { return Values(slice(x, 0, 0, 1)); });
  CHECK_THROWS_WITH(onnx::save(folder / "part.onnx", joined, {.input = {2, 3}, .batch = "N"}),
                    contains("slice") && contains("fixed batch"));
  nn::Sequential net = two_layers();
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .opset = 12}), ArgumentError);
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {}), ArgumentError);
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .outputs = {"a", "b"}}), ArgumentError);
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .outputs = {"input"}}), ArgumentError);
  const Tensor wrong(DType::f32, {1});
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .weights = {{"0.weight", wrong}}}), ShapeError);
}

TEST_CASE("given weights are written", "[onnx][export]") {
  const TemporaryFolder folder;
  nn::Sequential net = two_layers();
  const Tensor bias = Tensor::of<float>({3}, {1.5F, -2.0F, 0.25F});
  onnx::save(folder / "net.onnx", net, {.input = {2, 6}, .weights = {{"2.bias", bias}}});
  const onnx::Model model = onnx::read_model(folder / "net.onnx");
  const auto found = std::ranges::find(model.graph.initializers, "2.bias", &onnx::TensorProto::name);
  REQUIRE(found != model.graph.initializers.end());
  CHECK(std::ranges::equal(found->data.data, std::as_const(bias).bytes()));
}
