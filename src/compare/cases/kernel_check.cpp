// One replay of a graph, held against float64.
#include "concord/compare/cases/kernel_check.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compare/tolerance/tolerance.hpp"

namespace concord {
namespace {

std::optional<KernelFault> fault_of(const ReplayedNode& node, Precision precision) {
  const float64::Results exact = float64::evaluate(node);
  if (!exact) return {};
  const std::vector<Tensor> right = float64::right_results(node, *exact);
  Magnitudes magnitudes;
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if ((*exact)[k].empty()) continue;
    const double tolerance = tolerance_of(node, right, k, precision, magnitudes);
    const double error = comparable_error(largest_difference(node.results[k], (*exact)[k]), tolerance);
    if (!(error <= tolerance))
      return KernelFault{node.entry.op, node.entry.kernel, node.entry.shapes, error, tolerance};
  }
  return {};
}

}  // namespace

std::string KernelFault::str() const {
  return fmt::format("{} by the kernel {} is wrong: error {:.3g}, tolerance {:.3g} ({})", op, kernel, error, tolerance,
                     shapes);
}

std::optional<KernelFault> find_fault(const Graph& graph, std::span<const Value> outputs,
                                      const std::map<std::string, Tensor>& inputs, const DevicePtr& device,
                                      Precision precision) {
  constexpr std::uint64_t kSeed = 1;
  std::optional<KernelFault> first;
  for (const bool fused : {false, true}) {
    if (first) break;
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, kSeed),
                              {.retain = fused ? Retain::fused : Retain::all, .precision = precision});
    for (const auto& [name, tensor] : inputs) program.write(name, tensor);
    program.replay([](const std::string&) { return nullptr; },
                   [&](const ReplayedNode& node) {
                     if (!first) first = fault_of(node, precision);
                   });
  }
  return first;
}

}  // namespace concord
