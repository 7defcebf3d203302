// Sizes that fill tiles and sizes that do not, forward and backward, with epilogues and without.
#include "concord/compare/cases/alternative_cases.hpp"

#include <fmt/format.h>

#include "concord/core/philox.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"

namespace concord {
namespace {

using Inputs = std::span<const Value>;

/// The results, and the gradients of a sum that no normalisation makes a constant.
std::vector<Value> with_gradients(std::vector<Value> results, Inputs inputs) {
  Value loss = sum(tanh(results[0]));
  for (std::size_t i = 1; i < results.size(); ++i) loss = loss + sum(tanh(results[i]));
  for (const Value& slope : gradient(loss, {inputs.begin(), inputs.end()})) results.push_back(slope);
  return results;
}

std::vector<Value> products(Inputs in) {
  const Value chained = (matmul(in[0], in[1]) * 0.5F + in[6]) * in[4];
  return with_gradients(
      {relu(matmul(in[0], in[1]) + in[4]), matmul(transpose(in[2], {0, 2, 1}), in[3]) + in[5], chained}, in);
}

std::vector<Value> convolutions(Inputs in) {
  return with_gradients({relu(conv2d(in[0], in[1], {.padding = {1, 1}}) + in[6]),
                         conv2d(in[2], in[3], {.stride = {2, 2}, .padding = {1, 1}}), conv2d(in[4], in[5], {}),
                         relu(conv2d(in[4], in[5], {}) * 0.5F - in[4]), conv2d(in[0], in[7], {.stride = {2, 1}})},
                        in);
}

std::vector<Value> depthwise(Inputs in) {
  const std::int64_t groups = in[0].shape()[1];
  return with_gradients({relu(conv2d(in[0], in[1], {.padding = {1, 1}, .groups = groups}) + in[3]),
                         conv2d(in[0], in[2], {.stride = {2, 2}, .padding = {2, 2}, .groups = groups})},
                        in);
}

std::vector<Value> attentions(Inputs in) {
  return with_gradients({attention(in[0], in[1], in[2], {.causal = ops::Causal::last})}, in);
}

std::vector<Value> batch_norms(Inputs in) { return with_gradients({relu(batch_norm(in[0], in[1], in[2]).dst)}, in); }

/// Behind a product, whose images devices may lay channels-last.
std::vector<Value> batch_norms_of_products(Inputs in) {
  return with_gradients({relu(batch_norm(conv2d(in[0], in[1], {}), in[2], in[3]).dst)}, in);
}

std::vector<Value> recurrents(Inputs in) {
  const RecurrentResult result =
      recurrent(ops::RecurrentCell::lstm, {.gates_x = in[0], .weights = in[1], .h0 = in[2], .c0 = in[3]});
  return with_gradients({result.y, result.cn}, in);
}

std::vector<Value> others(Inputs in) {
  const Value pooled = max_pool2d(in[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  const Value moved = transpose(avg_pool2d(in[0], {.kernel = {2, 2}}), {0, 2, 3, 1});
  const Value rows = row_norm(reshape(moved, {-1, moved.shape()[3]}), 1).dst;
  return with_gradients({pooled, softmax(rows, 1), mean(tanh(pooled), {0, 2, 3}), cumsum(rows, 0)}, in);
}

}  // namespace

bool AlternativeCase::concerns(std::string_view family_of_alternative) const {
  return family_of_alternative == "all" || family_of_alternative == family ||
         (family_of_alternative == "product" && family == "convolution");
}

const std::vector<AlternativeCase>& alternative_cases() {
  static const std::vector<AlternativeCase> all{
      {"product", {{130, 99}, {99, 150}, {3, 64, 72}, {3, 64, 40}, {150}, {40}, {130, 150}}, products},
      {"convolution",
       {{3, 12, 9, 8},
        {70, 12, 3, 3},
        {2, 9, 11, 10},
        {130, 9, 3, 3},
        {2, 64, 7, 7},
        {64, 64, 1, 1},
        {70, 1, 1},
        {5, 12, 1, 1}},
       convolutions},
      {"depthwise", {{2, 8, 19, 21}, {8, 1, 3, 3}, {8, 1, 5, 5}, {8, 1, 1}}, depthwise},
      {"attention", {{2, 2, 33, 32}, {2, 2, 47, 32}, {2, 2, 47, 32}}, attentions},
      {"batch_norm", {{4, 6, 9, 12}, {6}, {6}}, batch_norms},
      {"batch_norm", {{4, 64, 14, 16}, {64, 64, 1, 1}, {64}, {64}}, batch_norms_of_products},
      {"recurrent", {{3, 66, 32}, {32, 8}, {66, 8}, {66, 8}}, recurrents},
      {"recurrent", {{3, 34, 1024}, {1024, 256}, {34, 256}, {34, 256}}, recurrents},
      {"other", {{2, 6, 18, 22}}, others}};
  return all;
}

AlternativeGraph::AlternativeGraph(const AlternativeCase& one) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    const std::string name = fmt::format("x{}", i);
    const TensorSpec spec{DType::f32, one.inputs[i]};
    values.push_back(graph.input(name, spec));
    Tensor tensor(spec);
    const Philox stream(i, philox_purpose("variant check"));
    std::uint64_t index = 0;
    for (float& value : tensor.values<float>()) value = stream.uniform(index++) - 0.5F;
    inputs.emplace(name, std::move(tensor));
  }
  outputs = one.build(values);
}

}  // namespace concord
