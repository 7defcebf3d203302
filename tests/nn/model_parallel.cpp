// What of a layer a device has, by shapes; the values are tested in tests/train/model_parallel.cpp.
#include "concord/nn/model_parallel.hpp"

#include "concord/nn/recurrent.hpp"
#include "concord/nn/stochastic_depth.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/random.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Shape shape_of(const Graph& graph, const std::string& name) {
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->name == name) return variable->spec.shape;
  }
  return {};
}

/// The streams of random numbers of a graph.
std::vector<std::uint32_t> streams_of(const Graph& graph) {
  std::vector<std::uint32_t> streams;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    if (const auto* random = dynamic_cast<const ops::Random*>(graph.node(id).op.get())) {
      streams.push_back(random->purpose());
    }
  }
  return streams;
}

}  // namespace

TEST_CASE("a device has some columns of the first layer of a pair and the rows of the second", "[nn]") {
  nn::Linear first{4, 6}, second{6, 5};
  Graph graph, plain;
  {
    const nn::DividedLayers layers(graph, nn::Division::tensor, 1, 3);
    const Value inner = first.column_parallel(graph.input("x", {DType::f32, Shape{7, 4}}));
    CHECK(inner.shape() == Shape{7, 2});
    {
      const Scope other(graph, "second");
      CHECK(second.row_parallel(inner).shape() == Shape{7, 5});
    }
    CHECK(nn::own_heads(graph, 6) == 2);
    CHECK_THROWS_AS(nn::own_heads(graph, 4), ArgumentError);
    CHECK_THROWS_AS(first.column_parallel(graph.find("x"), 3), ArgumentError);
    // The parameter is in the graph in parts already.
    CHECK_THROWS_AS(first(graph.find("x")), ArgumentError);
  }
  CHECK(shape_of(graph, "weight") == Shape{2, 4});
  CHECK(shape_of(graph, "second.weight") == Shape{5, 2});
  CHECK(most_all_reduced(graph) == 35);
  CHECK(first.column_parallel(plain.input("x", {DType::f32, Shape{7, 4}})).shape() == Shape{7, 6});
  CHECK(most_all_reduced(plain) == 0);
}

TEST_CASE("samples come together at the first linear layer, and nothing else does", "[nn]") {
  nn::Linear linear{4, 6}, table{3, 2};
  Graph graph;
  nn::DividedLayers layers(graph, nn::Division::hybrid, 0, 2);
  const Value x = graph.input("x", {DType::f32, Shape{4, 4}});
  const Values own = layers.own_samples(x);
  CHECK(own[0].shape() == Shape{2, 4});
  // As many rows as this device has samples, but no samples.
  {
    const Scope other(graph, "table");
    CHECK(table(graph.input("constant", {DType::f32, Shape{2, 3}})).shape() == Shape{2, 2});
  }
  const Value y = linear(own[0]);
  CHECK(y.shape() == Shape{4, 6});
  CHECK(layers.all_samples(Values(y))[0] == y);
  CHECK_THROWS_AS(layers.all_samples(Values(y + reshape(concat({own[0], own[0], own[0]}, 1), {4, 6}))), ArgumentError);
}

TEST_CASE("devices with other samples draw random numbers of their own", "[nn]") {
  std::vector<std::vector<std::uint32_t>> streams;
  for (const int rank : {0, 1}) {
    Graph graph;
    graph.set_training(true);
    nn::DividedLayers layers(graph, nn::Division::hybrid, rank, 2);
    const Values own = layers.own_samples(graph.input("x", {DType::f32, Shape{4, 3, 2}}));
    nn::LSTM layer(2, 2, {.num_layers = 2, .batch_first = true, .dropout = 0.5F});
    static_cast<void>(layer(nn::StochasticDepth(0.5F, nn::StochasticDepth::Mode::row)(own[0])));
    streams.push_back(streams_of(graph));
  }
  REQUIRE(streams[0].size() == 2);
  REQUIRE(streams[1].size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(streams[0][i] != streams[1][i]);
}
