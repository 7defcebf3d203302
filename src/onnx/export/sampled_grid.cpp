// What grid_sample composed is composed anew, with each of its options, and compared.
#include "concord/onnx/export/sampled_grid.hpp"

#include <map>
#include <typeinfo>
#include <vector>

#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

/// The input of the operator that computes `value`, if it is an Op; else an empty value.
template <class Op>
Value taken_by(const Value& value) {
  if (!value || dynamic_cast<const Op*>(value.node().op.get()) == nullptr) return {};
  return value.node().inputs[0];
}

bool is_same_operator(const Operator& a, const Operator& b) {
  if (typeid(a) != typeid(b) || a.name() != b.name()) return false;
  const auto* formula = dynamic_cast<const ops::Pointwise*>(&a);
  if (formula == nullptr) return a.attributes() == b.attributes();
  const auto& other = static_cast<const ops::Pointwise&>(b);
  return formula->expression().str() == other.expression().str() && formula->types() == other.types();
}

/// Whether two values of different graphs are computed in the same way. `pairs` has what is known to be the same.
bool is_same(const Value& a, const Value& b, std::map<Value, Value>& pairs) {
  if (const auto known = pairs.find(a); known != pairs.end()) return known->second == b;
  const Node &node = a.node(), &other = b.node();
  if (!node.op || !other.op || a.output() != b.output() || a.spec() != b.spec()) return false;
  if (!is_same_operator(*node.op, *other.op) || node.inputs.size() != other.inputs.size()) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_same(node.inputs[i], other.inputs[i], pairs)) return false;
  }
  pairs.emplace(a, b);
  return true;
}

bool is_sample(const Value& sampled, const SampledGrid& with) {
  Graph graph;
  const Value x = graph.input("x", with.x.spec()), grid = graph.input("grid", with.grid.spec());
  std::map<Value, Value> pairs{{x, with.x}, {grid, with.grid}};
  return is_same(grid_sample(x, grid, with.options), sampled, pairs);
}

std::vector<GridSampleOptions> all_options(const Shape& x) {
  using Mode = GridInterpolation;
  using enum GridPadding;
  std::vector<GridSampleOptions> all;
  for (const Mode mode : {Mode::bilinear, Mode::nearest, Mode::bicubic}) {
    if (mode == Mode::bicubic && x.rank() != 4) continue;
    for (const GridPadding padding : {zeros, border, reflection}) {
      for (const bool align_corners : {false, true}) all.push_back({mode, padding, align_corners});
    }
  }
  return all;
}

}  // namespace

std::optional<SampledGrid> sampled_grid(const Value& value, int opset) {
  constexpr int kImages = 16, kVolumes = 20;  // the versions that have GridSample of them
  const Value sampled = taken_by<ops::Transpose>(taken_by<ops::Reshape>(value));
  if (!sampled || !sampled.node().op || sampled.node().inputs.empty()) return std::nullopt;
  const bool is_gather = dynamic_cast<const ops::Gather*>(sampled.node().op.get()) != nullptr;
  const Node& gather = is_gather ? sampled.node() : sampled.node().inputs[0].node();
  if (dynamic_cast<const ops::Gather*>(gather.op.get()) == nullptr) return std::nullopt;
  const Node& rows = gather.inputs[1].node();
  if (!rows.op || rows.op->name() != "grid_rows" || rows.inputs.empty()) return std::nullopt;
  const Value inside = taken_by<ops::Pad>(gather.inputs[0]), table = inside ? inside : gather.inputs[0];
  SampledGrid found{taken_by<ops::Transpose>(taken_by<ops::Reshape>(table)),
                    taken_by<ops::Reshape>(taken_by<ops::Slice>(taken_by<ops::Reshape>(rows.inputs[0]))),
                    {}};
  if (!found.x || !found.grid || found.x.shape().rank() != found.grid.shape().rank()) return std::nullopt;
  if (opset < (found.x.shape().rank() == 4 ? kImages : kVolumes)) return std::nullopt;
  for (const GridSampleOptions& options : all_options(found.x.shape())) {
    found.options = options;
    if (is_sample(value, found)) return found;
  }
  return std::nullopt;
}

}  // namespace concord::onnx
