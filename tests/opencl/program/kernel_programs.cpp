// For scripts/amd-compile: programs of kernels that few networks ask for, of sizes that networks have. They are built
// here, and nothing runs them.
#include <fmt/format.h>

#include <set>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord/opencl/conv/row_unrolled.hpp"
#include "concord/opencl/device.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/gemm/tuning/trial.hpp"
#include "concord/ops/all_finite.hpp"
#include "opencl/context_of.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using Sources = std::vector<Value>;

/// The kernels of what `build` makes of values of these shapes, and of the gradients of its results by all f32 ones.
void ask(const DevicePtr& device, const std::vector<TensorSpec>& specs,
         const std::function<Sources(const Sources&)>& build, Precision precision = Precision::fp32) {
  Graph graph;
  Sources inputs, sources;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    inputs.push_back(graph.input(fmt::format("input{}", i), specs[i]));
    if (specs[i].dtype == DType::f32) sources.push_back(inputs.back());
  }
  Sources results = build(inputs);
  const Sources slopes = gradient(sum(results[0] * results[0]), sources);
  results.insert(results.end(), slopes.begin(), slopes.end());
  static_cast<void>(compile(graph, results, std::make_shared<Variables>(device, 1), {.precision = precision}));
}

TensorSpec numbers(Shape shape) { return {DType::f32, std::move(shape)}; }
TensorSpec indices(Shape shape) { return {DType::i32, std::move(shape)}; }

void ask_convolution(const DevicePtr& device, const char* way, const Shape& image, const Shape& weights,
                     const Conv2dOptions& options) {
  const std::optional<DebugOption> setting =
      way != nullptr ? std::optional<DebugOption>(std::in_place, "conv", way) : std::nullopt;
  ask(device, {numbers(image), numbers(weights)},
      [&](const Sources& x) { return Sources{conv2d(x[0], x[1], options)}; });
}

}  // namespace

TEST_CASE("the programs of kernels that few networks need are asked for", "[.][kernel_programs]") {
  for (const DevicePtr& device : opencl_devices()) {
    // Convolutions in every way.
    ask_convolution(device, nullptr, {8, 64, 56, 56}, {128, 1, 3, 3}, {.padding = {1, 1}, .groups = 64});
    ask_convolution(device, nullptr, {8, 64, 56, 56}, {64, 1, 7, 7},
                    {.padding = {6, 6}, .dilation = {2, 2}, .groups = 64});
    ask_convolution(device, "phases", {8, 64, 56, 56}, {128, 64, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
    ask_convolution(device, "phases", {8, 256, 56, 56}, {512, 256, 1, 1}, {.stride = {2, 2}});
    ask_convolution(device, "im2col", {8, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {1, 1}});
    ask_convolution(device, "winograd", {8, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {1, 1}});

    const auto each = [&](const char* key, const char* value, const std::function<void()>& asks) {
      const DebugOption setting(key, value);
      asks();
    };
    each("gemm", "reference", [&] {
      ask(device, {numbers({512, 768}), numbers({768, 512})},
          [](const Sources& x) { return Sources{matmul(x[0], x[1])}; });
    });
    for (const char* way : {"whole", "groups", "runs"}) {
      each("batch_norm", way, [&] {
        ask(device, {numbers({8, 64, 56, 56}), numbers({64}), numbers({64})},
            [](const Sources& x) { return Sources{relu(batch_norm(x[0], x[1], x[2]).dst)}; });
      });
    }

    // Rows and columns.
    for (const std::int64_t axis : {1, 2}) {
      ask(device, {numbers({32, 384, 1000})}, [&](const Sources& x) { return Sources{softmax(x[0], axis)}; });
      ask(device, {numbers({32, 384, 1000})}, [&](const Sources& x) { return Sources{log_softmax(x[0], axis)}; });
      ask(device, {numbers({32, 384, 1000})}, [&](const Sources& x) { return Sources{cumsum(x[0], axis)}; });
      ask(device, {numbers({32, 384, 1000})}, [&](const Sources& x) { return Sources{top_k(x[0], 5, axis).values}; });
      ask(device, {numbers({32, 384, 1000}), indices({32, 384, 1000})},
          [&](const Sources& x) { return Sources{gather_along(x[0], x[1], axis)}; });
      ask(device, {numbers({32, 384, 1000})}, [&](const Sources& x) { return Sources{norm(x[0], {axis})}; });
    }
    ask(device, {numbers({400, 8, 64}), indices({8, 100}), indices({8}), indices({8})},
        [](const Sources& x) { return Sources{ctc(x[0], x[1], x[2], x[3], 0, true)}; });

    ask(device, {numbers({1024, 768}), numbers({768}), numbers({768})},
        [](const Sources& x) { return Sources{row_norm(x[0], 1).dst * x[1] + x[2]}; });
    ask(device, {numbers({1024, 5000}), indices({1024})},
        [](const Sources& x) { return Sources{cross_entropy_rows(x[0], x[1], 0.1F)}; });
    ask(device, {numbers({64, 1000}), indices({64})}, [](const Sources& x) {
      const Value loss = mean(cross_entropy_rows(x[0], x[1]));
      const Value diff = gradient(loss, std::vector{x[0]})[0];
      return Sources{loss, sum(diff, {0}), diff * pointwise("step", {all_finite({diff}, {"x"})}, scalar::input(0))};
    });
    ask(device, {numbers({5000, 768}), indices({8, 128})}, [](const Sources& x) {
      Graph& graph = x[0].graph();
      const Value noise = random_uniform(graph, {8, 128, 768}) + random_normal(graph, {8, 128, 768});
      return Sources{dropout(gather(x[0], x[1]), 0.1F) + noise};
    });
    for (const ops::RecurrentCell cell : {ops::RecurrentCell::lstm, ops::RecurrentCell::gru}) {
      for (const std::int64_t hidden : {256, 2048}) {
        const std::int64_t gates = ops::gates_of(cell);
        ask(device,
            {numbers({16, 64, gates * hidden}), numbers({gates * hidden, hidden}), numbers({64, hidden}),
             numbers(cell == ops::RecurrentCell::lstm ? Shape{64, hidden} : Shape{gates * hidden})},
            [&](const Sources& x) {
              RecurrentOperands operands{x[0], x[1], x[2]};
              (cell == ops::RecurrentCell::lstm ? operands.c0 : operands.bias) = x[3];
              return Sources{recurrent(cell, operands).y};
            });
      }
    }

    // Images.
    for (const Interpolation mode : {Interpolation::nearest, Interpolation::linear, Interpolation::cubic}) {
      ask(device, {numbers({8, 64, 28, 28})},
          [&](const Sources& x) { return Sources{interpolate(x[0], {.scale_factor = {2}, .mode = mode})}; });
    }
    ask(device, {numbers({8, 64, 56, 56})}, [](const Sources& x) {
      const MaxPooled pooled = max_pool_with_indices(x[0], MaxPool2dOptions{.kernel = {2, 2}});
      return Sources{max_unpool(pooled.values, pooled.indices, std::vector<std::int64_t>{56, 56})};
    });
    ask(device, {numbers({8, 64, 56, 56})}, [](const Sources& x) {
      return Sources{max_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})};
    });
    ask(device, {numbers({8, 64, 56, 56})}, [](const Sources& x) {
      return Sources{adaptive_avg_pool(x[0], std::vector<std::int64_t>{5, 5})};
    });
    ask(device, {numbers({64, 256, 14, 14})},
        [](const Sources& x) { return Sources{global_avg_pool(x[0]) + global_max_pool(x[0])}; });
    ask(device, {numbers({8, 64, 56, 56})}, [](const Sources& x) {
      return Sources{adaptive_max_pool(x[0], std::vector<std::int64_t>{5, 5})};
    });
    ask(device, {numbers({64, 512, 768})}, [](const Sources& x) {
      return Sources{transpose(x[0], {0, 2, 1}), pad(x[0], {0, 1, 1}, {0, 1, 1}, 2)};
    });

    // Heads as wide as they are in large networks, with all that an attention may have.
    for (const std::int64_t width : {32, 64, 128}) {
      const TensorSpec heads = numbers({4, 12, 256, width});
      ask(device, {heads, heads, heads, indices({4})}, [](const Sources& x) {
        return Sources{attention(x[0], x[1], x[2], {.lengths = x[3], .causal = ops::Causal::first, .dropout = 0.1F})};
      });
    }
    ask(device, {numbers({4, 12, 256, 64})},
        [](const Sources& x) { return Sources{attention_reference(x[0], x[0], x[0], {.dropout = 0.1F})}; });
  }
}

TEST_CASE("the programs of kernels on images that lie channels-last are asked for", "[.][kernel_programs]") {
  for (const DevicePtr& device : opencl_devices()) {
    std::set<std::string> taken;
    ask(
        std::make_shared<OfferingDevice>(device, taken),
        {numbers({8, 64, 56, 56}), numbers({64}), numbers({64}), numbers({64, 1, 3, 3})},
        [](const Sources& x) {
          const Value y = relu(batch_norm(x[0], x[1], x[2]).dst);
          const Value z = conv2d(y, x[3], {.padding = {1, 1}, .groups = 64});
          const Value both = concat({max_pool2d(y, {.kernel = {2, 2}}), max_pool2d(tanh(z), {.kernel = {2, 2}}),
                                     avg_pool2d(y, {.kernel = {2, 2}})},
                                    1);
          return Sources{both, slice(both, 1, 8, 72), sum(z, {0, 2, 3}), y * global_avg_pool2d(z)};
        },
        Precision::bf16);
    CHECK(taken.size() >= 10);

    // What goes before and after products that read and write such images.
    opencl::Context& context = context_of(device);
    const ops::ConvSizes first =
        ops::conv_sizes({8, 3, 224, 224}, {64, 3, 7, 7}, {.stride = {1, 2, 2}, .padding = {0, 3, 3}});
    static_cast<void>(opencl::row_unrolled_forward_gemm(context, first, Precision::bf16, {}));
    static_cast<void>(opencl::row_unrolled_backward_weights_gemm(context, first, Precision::bf16));
    opencl::Gemm product = opencl::dense_gemm(256, 512, 2048);
    product.precision = Precision::bf16;
    product.c.is_channels_last = true;
    static_cast<void>(opencl::gemm_combine_stage(context, product, 4));
  }
}

TEST_CASE("the programs of kernels on tokens in 16 bits are asked for", "[.][kernel_programs]") {
  for (const DevicePtr& device : opencl_devices()) {
    std::set<std::string> taken;
    const auto offering = std::make_shared<OfferingDevice>(device, taken, true, opencl::ChannelAxis::last);
    for (const std::int64_t channels : {96, 768, 3072}) {
      ask(
          offering, {numbers({8, 197, channels}), numbers({channels})},
          [](const Sources& x) {
            const Value y = dropout(row_norm(tanh(x[0]), 2).dst * x[1], 0.1F);
            return Sources{y, row_norm_rms(x[0], 2).dst, sum(y, {2}), sum(y, {0, 1})};
          },
          Precision::bf16);
    }
    CHECK(taken.size() >= 6);
  }
}

TEST_CASE("the programs of products in every tiling are asked for", "[.][kernel_programs]") {
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    std::vector<opencl::Gemm> products;
    context.tuning()->listener = [&](const opencl::Gemm& gemm) { products.push_back(gemm); };
    ask(device, {numbers({1024, 768}), numbers({768, 1024}), numbers({1024})},
        [](const Sources& x) { return Sources{gelu(matmul(x[0], x[1]) + x[2])}; });
    const DebugOption way("conv", "gemm");
    ask_convolution(device, nullptr, {8, 64, 28, 28}, {128, 64, 3, 3}, {.padding = {1, 1}});
    context.tuning()->listener = {};
    std::set<std::string> seen;
    for (const opencl::Gemm& gemm : products) {
      if (!seen.insert(tuning_key(gemm)).second) continue;
      std::set<std::string> tiles;
      for (const opencl::GemmTiling& tiling : opencl::find_gemm_implementation("tiled")->tilings(context, gemm)) {
        if (!tiles.insert(tiling.tile).second) continue;
        REQUIRE(prepare_choice(context, gemm, {"tiled", tiling}, "compiled"));
      }
    }
    CHECK(seen.size() == 6);

    // What compares a tuned product with the plain one.
    opencl::ProductTrial trial(*device, context, opencl::dense_gemm(64, 64, 64, false, false));
    CHECK(trial.run(*prepare_choice(context, trial.gemm(), {"tiled", std::nullopt}, "compiled"), 0).fault.empty());
  }
}

}  // namespace concord::test
