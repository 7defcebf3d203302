// What tests of choose_layouts() share.
#pragma once

#include <string>
#include <vector>

#include "compile/fake_device.hpp"

namespace concord::test {

using Names = std::vector<std::string>;

inline const LayoutRule kAsOffered{nullptr, nullptr, true};

inline Lowered laid_out(const Graph& graph, std::span<const Value> outputs, FakeDevice& device) {
  Lowered program = lower(graph, outputs, false);
  choose_layouts(program, device);
  CHECK(in_order(program));
  return program;
}

/// What the passes get that make few launches of many.
inline Lowered with_invariants(const Graph& graph, std::span<const Value> outputs, FakeDevice& device) {
  Lowered program = lower(graph, outputs, false);
  fuse(program, device);
  choose_layouts(program, device);
  find_invariants(program);
  return program;
}

/// Every kernel reads and leaves the layouts it was prepared for.
inline void check_layouts(const Lowered& program) {
  for (const LoweredNode& node : program.nodes) {
    INFO(node.name);
    if (node.is_alias()) {
      CHECK(node.kernel == nullptr);
      if (!program.value(node.outputs[0]).layout) CHECK_FALSE(program.value(node.inputs[0]).layout);
      CHECK(program.value(node.outputs[0]).alias_of == node.inputs[0]);
      continue;
    }
    const auto* kernel = dynamic_cast<const FakeKernel*>(node.kernel.get());
    REQUIRE(kernel != nullptr);
    const auto check = [&](const std::vector<ValueId>& ids, const std::vector<Layout>& layouts) {
      REQUIRE(ids.size() == layouts.size());
      for (std::size_t i = 0; i < ids.size(); ++i) CHECK(same_layout(program.value(ids[i]).layout, layouts[i]));
    };
    check(node.inputs, kernel->input_layouts);
    check(node.outputs, kernel->output_layouts);
  }
  for (const LoweredAssignment& assignment : program.assignments) CHECK_FALSE(program.value(assignment.value).layout);
  for (const LoweredValue& value : program.values) {
    if (value.kind != LoweredValue::Kind::computed) CHECK_FALSE(value.layout);
  }
}

}  // namespace concord::test
