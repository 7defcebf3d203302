// Gather and scatter-add by rows and by elements. ONNX has no result for an index outside its table: such an index is
// an error there, and −1 is the last row.
#include "concord/ops/gather.hpp"

#include "concord/onnx/export/rules.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/random.hpp"

namespace concord::onnx {
namespace {

void require_scatter(const NodeExport& x) {
  if (x.opset() < 16) NodeExport::refuse("adding at indices needs opset 16");
}

std::vector<float> all_but(std::int64_t count, std::int64_t left_out) {
  std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
  if (left_out >= 0 && left_out < count) values[static_cast<std::size_t>(left_out)] = 0;
  return values;
}

/// src (I…, …), indices (I…) → (rows, …)
void write_scatter_add(NodeExport& x) {
  require_scatter(x);
  const auto& op = x.op<ops::ScatterAdd>();
  const std::string places =
      x.unsqueeze(x.cast(x.in(1), ElementType::i64), {static_cast<std::int64_t>(x.in_sizes(1).size())});
  std::string result = x.add("ScatterND", {x.filled(x.out_sizes(), 0), places, x.in(0)}, {text("reduction", "add")});
  if (op.padding() >= 0) {
    std::vector<std::int64_t> dims(x.out_sizes().size(), 1);
    dims[0] = op.rows();
    result = x.multiply(result, x.writer().tensor(Shape(dims), all_but(op.rows(), op.padding())));
  }
  x.bind(0, result);
}

void write_scatter_add_along(NodeExport& x) {
  require_scatter(x);
  x.bind(0, x.add("ScatterElements", {x.filled(x.out_sizes(), 0), x.cast(x.in(1), ElementType::i64), x.in(0)},
                  {whole("axis", static_cast<std::int64_t>(x.op<ops::ScatterAddAlong>().axis())),
                   text("reduction", "add")}));
}

}  // namespace

void add_gather_rules(Rules& rules) {
  rules[typeid(ops::Gather)] = [](NodeExport& x) {
    x.bind(0, x.add("Gather", {x.in(0), x.in(1)}, {whole("axis", 0)}));
  };
  rules[typeid(ops::ScatterAdd)] = write_scatter_add;
  rules[typeid(ops::GatherAlong)] = [](NodeExport& x) {
    x.bind(0, x.add("GatherElements", {x.in(0), x.in(1)},
                    {whole("axis", static_cast<std::int64_t>(x.op<ops::GatherAlong>().axis()))}));
  };
  rules[typeid(ops::ScatterAddAlong)] = write_scatter_add_along;
  rules[typeid(ops::Random)] = [](NodeExport&) {
    NodeExport::refuse("its random numbers cannot be drawn in ONNX; build the network without dropout");
  };
}

}  // namespace concord::onnx
