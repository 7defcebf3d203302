// The choice of networks, and one comparison.
#include "operator_check.hpp"

#include <algorithm>
#include <set>

#include "concord/concord.hpp"
#include "concord/ops/pointwise.hpp"
#include "dataset.hpp"
#include "random_data.hpp"

namespace concord::cli {
namespace {

constexpr std::int64_t kBatch = 2;

struct Candidate {
  const models::Model* model;
  std::set<std::string> operators;
  double length;  // nodes of the training step
};

/// Pointwise operators are one: their formulas differ, the kernel does not.
std::string family_of(const Operator& op) {
  return dynamic_cast<const ops::Pointwise*>(&op) != nullptr ? "pointwise" : std::string(op.name());
}

Candidate candidate_of(const models::Model& model) {
  const std::shared_ptr<nn::Module> network = models::make(model.name, {.input = model.least});
  Graph graph;
  const Value output = (*network)(graph.input("features", models::batch_of(model, model.least, kBatch)));
  const Value target = graph.input("target", models::target_of(model.task, output.shape()));
  optim::minimize(models::loss_of(model.task)(output, target), optim::Sgd{}, {});
  Candidate candidate{&model, {}, static_cast<double>(graph.size())};
  for (std::int32_t i = 0; i < graph.size(); ++i) {
    if (const Operator* op = graph.node(i).op.get()) candidate.operators.insert(family_of(*op));
  }
  return candidate;
}

}  // namespace

std::vector<OperatorCheck> operator_checks() {
  std::vector<Candidate> candidates;
  for (const models::Model& model : models::all()) candidates.push_back(candidate_of(model));
  std::vector<OperatorCheck> checks;
  while (true) {
    const auto gain = [](const Candidate& c) { return static_cast<double>(c.operators.size()) / c.length; };
    const auto best = std::ranges::max_element(candidates, {}, gain);
    if (best->operators.empty()) return checks;
    const std::set<std::string> covered = best->operators;
    checks.push_back({best->model, {covered.begin(), covered.end()}});
    for (Candidate& candidate : candidates) {
      std::erase_if(candidate.operators, [&](const std::string& name) { return covered.contains(name); });
    }
  }
}

Comparison check_operators(const models::Model& model, std::span<const DevicePtr> devices) {
  const Dataset data = random_data(model, model.least, kBatch, 1);
  return compare(*network_for(model, data), std::string(model.name), models::loss_of(model.task), optim::Sgd{}, data,
                 devices, {.steps = 1, .batch = kBatch, .seconds = 0.001, .reference = Reference::float64});
}

}  // namespace concord::cli
