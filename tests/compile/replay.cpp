// Replays: every operator is run once, in order, on the values that are given, and hands on what it made.
#include <cmath>
#include <map>
#include <stdexcept>

#include "concord/compile/program.hpp"
#include "concord/optim/minimize.hpp"
#include "concord_test.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

/// The graph of a step of training, with as many launches as lie on their way at once, and more.
struct Step {
  Step() {
    nn::Sequential network = small_net();
    const Dataset data = small_data(10);
    features = data.features;
    labels = data.labels;
    const Value x = graph.input("features", features.spec()), y = graph.input("labels", labels.spec());
    loss = loss::cross_entropy(network(x), y);
    optim::minimize(loss, optim::Adam{.lr = 0.01}, {});
  }
  [[nodiscard]] Program compiled(const DevicePtr& device, const CompileOptions& options) const {
    Program program = compile(graph, {&loss, 1}, std::make_shared<Variables>(device, 1), options);
    program.write("features", features);
    program.write("labels", labels);
    return program;
  }
  Graph graph;
  Value loss;
  Tensor features, labels;
};

const Tensor* nothing(const std::string&) { return nullptr; }

std::map<std::string, Tensor> results_of(Program& program) {
  std::map<std::string, Tensor> results;
  program.replay(nothing, [&](const ReplayedNode& node) {
    for (std::size_t k = 0; k < node.results.size(); ++k) results.emplace(node.outputs[k], node.results[k]);
  });
  return results;
}

bool same_bits(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

}  // namespace

TEST_CASE("a replay makes what a run makes, operator by operator", "[compile]") {
  const Step step;
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    for (const bool fused : {false, true}) {
      const CompileOptions options{.retain = fused ? Retain::fused : Retain::all};
      Program replayed = step.compiled(device, options), run = step.compiled(device, options);
      const std::map<std::string, Tensor> results = results_of(replayed);
      CHECK(results.size() > 20);
      run.run();
      for (const auto& [name, value] : results) {
        CAPTURE(name);
        CHECK(same_bits(value, run.read(name)));
      }
      replayed.commit();
      for (const auto& [name, value] : run.variables().read_all()) {
        CAPTURE(name);
        CHECK(same_bits(value, replayed.variables().read(name)));
      }
    }
  }
}

TEST_CASE("operators of a replay are run on the values given", "[compile]") {
  const Step step;
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    Program program = step.compiled(device, {.retain = Retain::all});
    const std::map<std::string, Tensor> first = results_of(program);
    Tensor twos(first.at("1/relu").spec());
    std::ranges::fill(twos.values<float>(), 2.0F);
    std::size_t read_twos = 0;
    std::vector<std::string> order;
    const auto given = [&](const std::string& name) -> const Tensor* {
      if (name == "1/relu") return &twos;
      const auto found = first.find(name);
      return found == first.end() ? nullptr : &found->second;
    };
    program.replay(given, [&](const ReplayedNode& node) {
      order.push_back(node.entry.node);
      bool reads = false;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.input_names[i] != "1/relu") continue;
        reads = true;
        CHECK(same_bits(node.inputs[i], twos));
      }
      read_twos += reads ? 1 : 0;
      for (std::size_t k = 0; !reads && k < node.results.size(); ++k) {
        CAPTURE(node.entry.node, node.outputs[k]);
        CHECK(same_bits(node.results[k], first.at(node.outputs[k])));  // what is wrong is not carried on
      }
    });
    CHECK(read_twos >= 2);  // the next product, and its gradient of the weights
    CHECK(order.size() >= first.size() / 2);
  }
}

TEST_CASE("a replay that is left by an exception leaves a program that can be run", "[compile]") {
  const Step step;
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    Program program = step.compiled(device, {.retain = Retain::all});
    const std::map<std::string, Tensor> expected = results_of(program);
    for (const std::size_t at : {0U, 7U}) {
      std::size_t seen = 0;
      const auto leave = [&](const ReplayedNode&) {
        if (seen++ == at) throw std::runtime_error("enough");
      };
      CHECK_THROWS_WITH(program.replay(nothing, leave), "enough");
      CHECK(seen == at + 1);
    }
    for (const auto& [name, value] : results_of(program)) {
      CAPTURE(name);
      CHECK(same_bits(value, expected.at(name)));
    }
  }
}

}  // namespace concord::test
