// Tensors without elements: an operator refuses them with a typed error, or its results and its gradients are those of
// double precision on every device; nothing that nobody wrote is ever read. Inference is in empty_inference.cpp.
#include <cmath>

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"
#include "concord/ops/top_k.hpp"
#include "ops/empty_form.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

/// The outputs and the gradients of Σ outputs by all f32 inputs, or nothing where the form is refused.
std::vector<Value> built(const EmptyForm& form, Graph& graph) {
  std::vector<Value> inputs, wanted;
  for (std::size_t i = 0; i < form.inputs.size(); ++i) {
    inputs.push_back(graph.input("x" + std::to_string(i), form.inputs[i]));
    if (form.inputs[i].dtype == DType::f32) wanted.push_back(inputs.back());
  }
  try {
    std::vector<Value> results = form.build(inputs);
    Value loss;
    for (const Value& result : results) {
      if (result.dtype() != DType::f32) continue;
      loss = loss ? loss + sum(result) : sum(result);
    }
    for (const Value& slope : gradient(loss, wanted)) results.push_back(slope);
    return results;
  } catch (const ShapeError&) {
    return {};
  } catch (const ArgumentError&) {
    return {};
  }
}

void check_empty(const EmptyForm& form) {
  for (const DevicePtr& device : devices()) {
    Graph graph;
    const std::vector<Value> results = built(form, graph);
    if (results.empty()) continue;
    INFO(form.name << " on " << device->info().id);
    Program program = compile(graph, results, std::make_shared<Variables>(device, 7), {.retain = Retain::all});
    for (std::size_t i = 0; i < form.inputs.size(); ++i) {
      program.write("x" + std::to_string(i), numbers(form.inputs[i]));
    }
    program.replay([](const std::string&) { return nullptr; },
                   [](const ReplayedNode& node) {
                     const float64::Results exact = float64::evaluate(node);
                     for (std::size_t k = 0; exact && k < node.results.size(); ++k) {
                       if ((*exact)[k].empty()) continue;
                       INFO(node.entry.op << " " << node.entry.shapes << ", result " << k);
                       const Array got = to_array(node.results[k]);
                       std::size_t wrong = 0;
                       for (std::size_t i = 0; i < got.values.size(); ++i) {
                         const double wanted = (*exact)[k][i];
                         const bool same = got.values[i] == wanted || (std::isnan(got.values[i]) && std::isnan(wanted));
                         if (!same && !(std::abs(got.values[i] - wanted) <= 1e-4)) ++wrong;
                       }
                       CHECK(wrong == 0);
                     }
                   });
    program.run();  // fused, and with the memory of a step
    for (const Value& result : results) static_cast<void>(program.read(result));
  }
}

/// `form` with each combination of axes of its first input set to 0 that has one axis.
void check_each_axis(const std::string& name, const Shape& shape, const Build& build,
                     std::vector<TensorSpec> others = {}) {
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
    dims[axis] = 0;
    std::vector<TensorSpec> inputs{f32(Shape(dims))};
    inputs.insert(inputs.end(), others.begin(), others.end());
    check_empty({name + " of " + Shape(dims).str(), inputs, build});
  }
}

std::vector<Tensor> results_of(const DevicePtr& device, const EmptyForm& form) {
  Graph graph;
  return read_results(device, form, graph, built(form, graph));
}

TEST_CASE("what is gathered by no index has a gradient of zero", "[ops][empty]") {
  const DebugOption filled("fill_memory", "1");
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    for (const std::int64_t width : {std::int64_t{1}, std::int64_t{3}}) {
      const auto rows = results_of(device, {"gather", {f32({4, width}), i32({0})}, [](const std::vector<Value>& x) {
                                              return std::vector{gather(x[0], x[1])};
                                            }});
      CHECK(rows[0].shape() == Shape{0, width});
      for (const double v : to_array(rows[1]).values) CHECK(v == 0);
    }
    const auto along = results_of(device, {"gather_along", {f32({4, 3}), i32({4, 0})}, [](const std::vector<Value>& x) {
                                             return std::vector{gather_along(x[0], x[1], 1)};
                                           }});
    for (const double v : to_array(along[1]).values) CHECK(v == 0);
    const auto selected = results_of(device, {"index_select", {f32({4, 3}), i32({0})}, [](const std::vector<Value>& x) {
                                                return std::vector{index_select(x[0], 1, x[1])};
                                              }});
    for (const double v : to_array(selected[1]).values) CHECK(v == 0);
  }
}

TEST_CASE("sums of nothing are zero, and nothing has no influence", "[ops][empty]") {
  const DebugOption filled("fill_memory", "1");
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto sums = results_of(device, {"sum", {f32({3, 0, 2})}, [](const std::vector<Value>& x) {
                                            return std::vector{sum(x[0], {1}), sum(x[0])};
                                          }});
    for (const std::size_t k : {0, 1}) {
      for (const double v : to_array(sums[k]).values) CHECK(v == 0);
    }
    CHECK(sums[0].shape() == Shape{3, 2});
    const auto joined = results_of(device, {"concat", {f32({2, 0}), f32({2, 3})}, [](const std::vector<Value>& x) {
                                              return std::vector{concat({x[0], x[1]}, 1), slice(x[1], 1, 2, 2)};
                                            }});
    CHECK(to_array(joined[0]).values == std::vector<double>{0, 1, 2, 0, 1, 2});
    CHECK(joined[1].shape() == Shape{2, 0});
    CHECK(to_array(joined[3]).values == std::vector<double>(6, 1));
  }
}

TEST_CASE("every operator refuses what is empty or computes it", "[ops][empty]") {
  const DebugOption filled("fill_memory", "1");
  check_each_axis("pointwise", {2, 3}, [](const std::vector<Value>& x) { return std::vector{relu(x[0] * 2) + 1}; });
  check_each_axis("broadcast", {1, 3, 1}, [](const std::vector<Value>& x) { return std::vector{x[0] + x[1]}; },
                  {f32({2, 1, 4})});
  for (const std::int64_t axis : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}}) {
    check_each_axis("along an axis", {2, 3, 2}, [axis](const std::vector<Value>& x) {
      return std::vector{sum(x[0], {axis}), cumsum(x[0], axis), flip(x[0], {axis}), repeat_interleave(x[0], 2, axis)};
    });
    check_each_axis("max", {2, 3, 2}, [axis](const std::vector<Value>& x) {
      return std::vector{reduce_max(x[0], {axis}), argmax(x[0], axis)};
    });
    check_each_axis("mean", {2, 3, 2}, [axis](const std::vector<Value>& x) { return std::vector{mean(x[0], {axis})}; });
    check_each_axis("top_k", {2, 3, 2},
                    [axis](const std::vector<Value>& x) { return std::vector{top_k(x[0], 1, axis).values}; });
    check_each_axis("softmax", {2, 3, 2}, [axis](const std::vector<Value>& x) {
      return std::vector{softmax(x[0], axis), log_softmax(x[0], axis)};
    });
    check_each_axis("concat", {2, 3, 2}, [axis](const std::vector<Value>& x) {
      return std::vector{concat({x[0], x[0], x[0]}, axis)};
    });
    check_each_axis("slice", {2, 3, 2},
                    [axis](const std::vector<Value>& x) { return std::vector{slice(x[0], axis, 0, 0)}; });
  }
  check_each_axis("copies", {2, 3, 2}, [](const std::vector<Value>& x) {
    return std::vector{transpose(x[0], {2, 0, 1}), pad(x[0], {1, 0, 0}, {0, 2, 1}, 3), reshape(x[0], {-1, 1})};
  });
  check_each_axis("reflect", {1, 2, 3, 3}, [](const std::vector<Value>& x) {
    return std::vector{pad_spatial(x[0], PadMode::replicate, std::vector<std::int64_t>{1, 1, 0, 1})};
  });
  check_each_axis("gather", {4, 3}, [](const std::vector<Value>& x) { return std::vector{gather(x[0], x[1])}; },
                  {i32({5})});
  check_each_axis("scatter_add", {5, 3}, [](const std::vector<Value>& x) {
    return std::vector{scatter_add(x[0], pointwise("i", {sum(x[0], {1})}, Scalar(1.0F), DType::i32), 4)};
  });
  check_each_axis("matmul left", {2, 3}, [](const std::vector<Value>& x) {
    return std::vector{matmul(x[0], full(x[0].graph(), {x[0].shape()[1], 4}, 1))};
  });
  check_each_axis("matmul in batches", {2, 3, 4}, [](const std::vector<Value>& x) {
    return std::vector{matmul(x[0], full(x[0].graph(), {x[0].shape()[0], x[0].shape()[2], 2}, 1))};
  });
  check_each_axis("conv", {2, 3, 5, 5}, [](const std::vector<Value>& x) { return std::vector{conv2d(x[0], x[1])}; },
                  {f32({2, 3, 3, 3})});
  check_each_axis("conv weights", {2, 3, 3, 3},
                  [](const std::vector<Value>& x) {
                    return std::vector{conv2d(x[1], x[0], {.padding = {1, 1}})};
                  },
                  {f32({2, 3, 5, 5})});
  check_each_axis("pools", {2, 3, 4, 4}, [](const std::vector<Value>& x) {
    return std::vector{max_pool2d(x[0], {}), avg_pool2d(x[0], {})};
  });
  check_each_axis("interpolate", {2, 3, 4, 4}, [](const std::vector<Value>& x) {
    return std::vector{interpolate(x[0], {.size = {3, 5}, .mode = Interpolation::linear})};
  });
  check_each_axis("batch_norm", {2, 3, 4}, [](const std::vector<Value>& x) {
    const Value one = full(x[0].graph(), {x[0].shape()[1]}, 1);
    return std::vector{batch_norm(x[0], one, one).dst};
  });
  check_each_axis("row_norm", {2, 3, 4},
                  [](const std::vector<Value>& x) { return std::vector{row_norm(x[0], 1).dst}; });
  check_each_axis("cross_entropy", {2, 3}, [](const std::vector<Value>& x) {
    return std::vector{cross_entropy_rows(x[0], full(x[0].graph(), x[0].shape(), 0.5F))};
  });
  check_each_axis("attention", {1, 2, 3, 4}, [](const std::vector<Value>& x) {
    return std::vector{attention(x[0], x[0], x[0]), attention_reference(x[0], x[0], x[0])};
  });
  check_each_axis("dropout", {2, 3}, [](const std::vector<Value>& x) { return std::vector{dropout(x[0], 0.5F)}; });
}

}  // namespace
}  // namespace concord::test
