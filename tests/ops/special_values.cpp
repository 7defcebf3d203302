// NaN, ∞ and −∞ in single places: what each operator and its gradients make of them is a number, NaN or an infinity
// where double precision has one, on every device.
#include <cfloat>
#include <cmath>

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/ctc.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/resize.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"
#include "concord/ops/top_k.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Form {
  std::string name;
  std::vector<Input> inputs;
  Build build;
  std::size_t special = 1;  // how many of the inputs take special values, the first ones
};

Input whole(Shape shape, std::vector<double> values) {
  return {Array(std::move(shape), std::move(values)), DType::i32};
}

std::string class_of(double x) {
  if (std::isnan(x)) return "NaN";
  return std::isinf(x) ? (x > 0 ? "inf" : "-inf") : "finite";
}

/// Where an operator's results are of other classes than in double precision; empty where they are not.
std::string unlike(const ReplayedNode& node) {
  const float64::Results exact = float64::evaluate(node);
  for (std::size_t k = 0; exact && k < node.results.size(); ++k) {
    if ((*exact)[k].empty()) continue;
    const bool is_mean = node.entry.op == "row_norm" && k == 2;  // of a row with an infinity: that or NaN
    const Array got = to_array(node.results[k]);
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      const double wanted = (*exact)[k][i];
      if (std::isfinite(wanted) && std::abs(wanted) > static_cast<double>(FLT_MAX) / 2) continue;
      const bool is_place = node.results[k].dtype() != DType::f32;
      if (is_mean && std::isinf(wanted) && std::isnan(got.values[i])) continue;
      if (class_of(got.values[i]) != class_of(wanted) || (is_place && got.values[i] != wanted)) {
        return node.entry.op + ", result " + std::to_string(k) + " at " + std::to_string(i) + ": " +
               std::to_string(got.values[i]) + " instead of " + std::to_string(wanted);
      }
    }
  }
  return "";
}

void check_form(const Form& form, const CompileOptions& options = {.retain = Retain::all}) {
  for (const DevicePtr& device : devices()) {
    Graph graph;
    std::vector<Value> values;
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < form.inputs.size(); ++i) {
      const Input& input = form.inputs[i];
      tensors.emplace_back(input.dtype, input.value.shape);
      if (input.dtype == DType::i32) {
        std::ranges::copy(input.value.values, tensors.back().values<std::int32_t>().begin());
      } else {
        std::ranges::copy(input.value.values, tensors.back().values<float>().begin());
      }
      values.push_back(graph.input("x" + std::to_string(i), tensors.back().spec()));
    }
    std::vector<Value> results = form.build(values);
    Value loss;
    for (const Value& result : results) {
      if (result.dtype() != DType::f32) continue;
      const Value term = sum(result * full(graph, result.shape(), 0.75F));
      loss = loss ? loss + term : term;
    }
    const std::vector<Value> wanted(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(form.special));
    for (const Value& slope : gradient(loss, wanted)) results.push_back(slope);
    Program program = compile(graph, results, std::make_shared<Variables>(device, 7), options);
    for (std::size_t i = 0; i < values.size(); ++i) program.write(values[i].name(), tensors[i]);
    for (std::size_t i = 0; i < form.special; ++i) {
      const Tensor plain = tensors[i];
      const auto last = static_cast<std::size_t>(plain.elements());
      for (const double special : {std::nan(""), kInfinity, -kInfinity}) {
        for (const std::size_t place : {std::size_t{0}, last / 2 + 1}) {
          Tensor changed(plain.spec());
          std::ranges::copy(plain.values<float>(), changed.values<float>().begin());
          changed.values<float>()[place] = static_cast<float>(special);
          program.write(values[i].name(), changed);
          std::string strange;
          program.replay([](const std::string&) { return nullptr; },
                         [&](const ReplayedNode& node) {
                           if (strange.empty()) strange = unlike(node);
                         });
          INFO(form.name << ", input " << i << " has " << special << " at " << place << ", on " << device->info().id);
          CHECK(strange == "");
        }
      }
      program.write(values[i].name(), plain);
    }
  }
}

TEST_CASE("special values in softmax and cross-entropy", "[ops][special]") {
  for (const std::int64_t axis : {std::int64_t{1}, std::int64_t{0}}) {
    check_form({"softmax", {{normal({3, 37}, 1)}}, [axis](const std::vector<Value>& x) {
                  return std::vector{softmax(x[0], axis)};
                }});
    check_form({"log_softmax", {{normal({3, 37}, 1)}}, [axis](const std::vector<Value>& x) {
                  return std::vector{log_softmax(x[0], axis)};
                }});
  }
  check_form({"cross_entropy of classes",
              {{normal({3, 7}, 1)}, whole({3}, {2, 6, 0})},
              [](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1])}; }});
  check_form({"cross_entropy, smoothed", {{normal({3, 7}, 1)}, whole({3}, {2, 6, 0})}, [](const std::vector<Value>& x) {
                return std::vector{cross_entropy_rows(x[0], x[1], 0.1F)};
              }});
  check_form({"cross_entropy of probabilities",
              {{normal({3, 7}, 1)}, {uniform({3, 7}, 2, 0, 1)}},
              [](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1])}; },
              2});
}

TEST_CASE("special values in reductions and sorts", "[ops][special]") {
  const auto over = [](auto function, std::int64_t axis) {
    return [=](const std::vector<Value>& x) { return std::vector{function(x[0], {axis}, false)}; };
  };
  for (const std::int64_t axis : {std::int64_t{1}, std::int64_t{0}}) {
    check_form({"sum", {{normal({5, 33}, 1)}}, over(&sum, axis)});
    check_form({"mean", {{normal({5, 33}, 1)}}, over(&mean, axis)});
    check_form({"reduce_max", {{normal({5, 33}, 1)}}, over(&reduce_max, axis)});
    check_form({"reduce_min", {{normal({5, 33}, 1)}}, over(&reduce_min, axis)});
    check_form({"argmax, top_k, cumsum", {{normal({5, 33}, 1)}}, [axis](const std::vector<Value>& x) {
                  return std::vector{argmax(x[0], axis), argmin(x[0], axis), top_k(x[0], 4, axis).values,
                                     top_k(x[0], 3, axis, false).values, cumsum(x[0], axis)};
                }});
  }
}

TEST_CASE("special values in pools", "[ops][special]") {
  const MaxPool2dOptions apart{.kernel = {2, 2}}, near{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const Input image{normal({2, 2, 6, 6}, 1)};
  check_form({"max_pool", {image}, [&](const std::vector<Value>& x) {
                return std::vector{max_pool2d(x[0], apart), max_pool2d(x[0], near)};
              }});
  check_form({"avg_pool", {image}, [](const std::vector<Value>& x) {
                return std::vector{avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}),
                                   avg_pool2d(x[0], {.kernel = {2, 2}}), global_avg_pool(x[0]), global_max_pool(x[0])};
              }});
  check_form({"max_unpool", {{normal({2, 2, 3, 3}, 1)}}, [](const std::vector<Value>& x) {
                const MaxPooled pooled =
                    max_pool_with_indices(pad(x[0], {0, 0, 1, 1}, {0, 0, 2, 2}), MaxPool2dOptions{.kernel = {2, 2}});
                return std::vector{max_unpool(pooled.values, pooled.indices, std::vector<std::int64_t>{6, 6})};
              }});
}

TEST_CASE("special values in products", "[ops][special]") {
  check_form({"matmul",
              {{normal({5, 7}, 1)}, {normal({7, 6}, 2)}},
              [](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1])}; },
              2});
  check_form({"conv", {{normal({1, 3, 6, 6}, 1)}, {normal({4, 3, 3, 3}, 2)}}, [](const std::vector<Value>& x) {
                return std::vector{conv2d(x[0], x[1], {.stride = {2, 2}, .padding = {1, 1}})};
              }});
  check_form({"conv_transpose",
              {{normal({1, 3, 4, 4}, 1)}, {normal({3, 2, 3, 3}, 2)}},
              [](const std::vector<Value>& x) { return std::vector{conv_transpose2d(x[0], x[1])}; }});
  // Whether a weight meets the zeros of the padding is a kernel's choice; without padding there is none.
  check_form({"conv weights", {{normal({4, 3, 3, 3}, 2)}, {normal({1, 3, 6, 6}, 1)}}, [](const std::vector<Value>& x) {
                return std::vector{conv2d(x[1], x[0])};
              }});
}

TEST_CASE("special values in what is fused behind products", "[ops][special]") {
  using Step = Value (*)(Value);
  const std::vector<std::pair<std::string, Step>> steps{
      {"relu", [](Value x) { return relu(x); }},
      {"clamp", [](Value x) { return clamp(x, 0, 6); }},
      {"hard_swish", [](Value x) { return hard_swish(x); }},
      {"tanh", [](Value x) { return tanh(x); }},
      {"scale, shift, relu", [](Value x) { return relu(x * 0.5F + 0.25F); }}};
  for (const auto& [name, step] : steps) {
    check_form({name + " behind matmul",
                {{normal({5, 7}, 1)}, {normal({7, 6}, 2)}},
                [step](const std::vector<Value>& x) { return std::vector{step(matmul(x[0], x[1]))}; }},
               {.retain = Retain::fused});
  }
  check_form({"relu behind conv",
              {{normal({1, 3, 6, 6}, 1)}, {normal({4, 3, 3, 3}, 2)}, {normal({4, 1, 1}, 3)}},
              [](const std::vector<Value>& x) {
                return std::vector{relu(conv2d(x[0], x[1], {.padding = {1, 1}}) + x[2])};
              }},
             {.retain = Retain::fused});
}

TEST_CASE("special values in normalisations", "[ops][special]") {
  check_form({"row_norm", {{normal({4, 19}, 1)}}, [](const std::vector<Value>& x) {
                return std::vector{row_norm(x[0], 1).dst};
              }});
}

TEST_CASE("special values in what moves elements", "[ops][special]") {
  check_form({"gather", {{normal({5, 3}, 1)}, whole({4}, {3, 0, 3, 9})}, [](const std::vector<Value>& x) {
                return std::vector{gather(x[0], x[1])};
              }});
  check_form({"gather_along",
              {{normal({4, 5}, 1)}, whole({4, 2}, {3, 0, 3, 9, 1, 1, 0, 4})},
              [](const std::vector<Value>& x) { return std::vector{gather_along(x[0], x[1], 1)}; }});
  check_form({"scatter_add", {{normal({4, 3}, 1)}, whole({4}, {3, 0, 3, 9})}, [](const std::vector<Value>& x) {
                return std::vector{scatter_add(x[0], x[1], 5)};
              }});
  check_form({"concat, slice, pad",
              {{normal({4, 5}, 1)}, {normal({4, 5}, 2)}},
              [](const std::vector<Value>& x) {
                const Value both = concat({x[0], transpose(transpose(x[1], {1, 0}), {1, 0})}, 1);
                return std::vector{pad(slice(both, 1, 2, 9, 2), {1, 1}, {0, 2}, 0.5F)};
              },
              2});
  check_form({"pad by reflection, interpolate", {{normal({1, 2, 5, 5}, 1)}}, [](const std::vector<Value>& x) {
                return std::vector{pad_spatial(x[0], PadMode::reflect, std::vector<std::int64_t>{1, 2, 2, 1}),
                                   interpolate(x[0], {.size = {8, 3}, .mode = Interpolation::linear})};
              }});
  check_form({"resize with one tap at each position of the source, its gradient with special values",
              {{normal({1, 2, 5, 5}, 1)}, {normal({1, 2, 10, 10}, 2)}},
              [](const std::vector<Value>& x) {
                const ResizeOptions options{.mode = Interpolation::linear,
                                            .coordinates = ResizeCoordinates::asymmetric};
                const Value resized = resize(x[0], {{.axis = 2, .size = 10}, {.axis = 3, .size = 10}}, options);
                return std::vector{resized * x[1], gaussian_blur(x[0], 3, 0.8)};
              },
              2});
  check_form({"where",
              {{normal({4, 5}, 1)}, {normal({4, 5}, 2)}},
              [](const std::vector<Value>& x) {
                const Value condition = pointwise("condition", {full(x[0].graph(), x[0].shape(), 0)},
                                                  scalar::less(scalar::coordinate(0), 2.0F));
                return std::vector{where(condition, x[0], x[1]), masked_fill(x[0], condition, 3)};
              },
              2});
  check_form({"minimum, maximum, clamp",
              {{normal({4, 5}, 1)}, {normal({4, 5}, 2)}},
              [](const std::vector<Value>& x) {
                return std::vector{minimum(x[0], x[1]), maximum(x[0], x[1]), clamp(x[0], -0.5F, 0.5F)};
              },
              2});
}

TEST_CASE("special values in sequences", "[ops][special]") {
  check_form(
      {"lstm",
       {{normal({3, 2, 8}, 1)}, {normal({8, 2}, 2)}, {normal({2, 2}, 3)}, {normal({2, 2}, 4)}, whole({2}, {3, 2})},
       [](const std::vector<Value>& x) {
         const RecurrentResult r = recurrent(
             ops::RecurrentCell::lstm, {.gates_x = x[0], .weights = x[1], .h0 = x[2], .c0 = x[3], .lengths = x[4]});
         return std::vector{r.y, r.hn, r.cn};
       },
       1});
  check_form({"gru",
              {{normal({3, 2, 6}, 1)}, {normal({6, 2}, 2)}, {normal({2, 2}, 3)}, {normal({6}, 4)}},
              [](const std::vector<Value>& x) {
                const RecurrentResult r = recurrent(ops::RecurrentCell::gru,
                                                    {.gates_x = x[0], .weights = x[1], .h0 = x[2], .bias = x[3]}, true);
                return std::vector{r.y, r.hn};
              },
              1});
  check_form(
      {"attention",
       {{normal({1, 2, 5, 5}, 1)}, {normal({1, 1, 7, 5}, 2)}, {normal({1, 1, 7, 5}, 3)}, {normal({1, 1, 5, 7}, 4)}},
       [](const std::vector<Value>& x) {
         return std::vector{attention(x[0], x[1], x[2], {.mask = x[3], .causal = ops::Causal::last})};
       },
       3});
  check_form({"ctc",
              {{Array({6, 2, 4}, std::vector<double>(48, -1.5))},
               whole({2, 3}, {1, 2, 2, 3, 1, 0}),
               whole({2}, {6, 5}),
               whole({2}, {3, 2})},
              [](const std::vector<Value>& x) { return std::vector{ctc(x[0], x[1], x[2], x[3])}; }});
}

}  // namespace
}  // namespace concord::test
