// What tests of fuse() share: a graph lowered and fused for a device that only answers, and its operators.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/fake_device.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::test {

using Names = std::vector<std::string>;

inline Lowered fused(const Graph& graph, std::span<const Value> outputs, const Device& device = FakeDevice()) {
  Lowered program = lower(graph, outputs, false);
  fuse(program, device);
  CHECK(in_order(program));
  return program;
}

inline bool takes_everything(const Operator&, const Expression&) { return true; }

inline const ops::Pointwise& pointwise_of(const LoweredNode& node) {
  const auto* op = dynamic_cast<const ops::Pointwise*>(node.op.get());
  REQUIRE(op != nullptr);
  return *op;
}

inline const ops::Fused& fused_of(const LoweredNode& node) {
  const auto* op = dynamic_cast<const ops::Fused*>(node.op.get());
  REQUIRE(op != nullptr);
  return *op;
}

}  // namespace concord::test
