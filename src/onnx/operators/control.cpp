// If: a branch of nodes that is chosen while tracing or, if its condition depends on data, computed beside the other.
#include "concord/core/check.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

const GraphDef& branch_of(const Call& call, const char* name) {
  const Attribute* const attribute = call.find(name);
  CONCORD_CHECK(attribute != nullptr && attribute->graphs.size() == 1, FormatError, "it has no graph '{}'", name);
  return attribute->graphs[0];
}

void if_of(Call& call) {
  const GraphDef& then_branch = branch_of(call, "then_branch");
  const GraphDef& else_branch = branch_of(call, "else_branch");
  if (call.is_known(0)) {
    const auto outputs = call.tracer().run_branch(call.integer(0) != 0 ? then_branch : else_branch);
    for (std::size_t k = 0; k < outputs.size(); ++k) call.set(k, outputs[k]);
    return;
  }
  const auto yes = call.tracer().run_branch(then_branch), no = call.tracer().run_branch(else_branch);
  CONCORD_CHECK(yes.size() == no.size(), FormatError, "its branches have {} and {} outputs", yes.size(), no.size());
  for (std::size_t k = 0; k < yes.size(); ++k) {
    CONCORD_CHECK(yes[k]->dims == no[k]->dims && yes[k]->type == no[k]->type, NotSupported,
                  "its condition depends on data, and its branches give different shapes; if it follows from an input, "
                  "give that input as a known value");
    const Value a = call.tracer().value_of(*yes[k]), b = call.tracer().value_of(*no[k]);
    const Value condition = reshape(call.value(0), Shape{});
    call.set(k,
             pointwise("if", {condition, a, b}, scalar::select(scalar::input(0), scalar::input(1), scalar::input(2)),
                       a.dtype()),
             yes[k]->type);
  }
}

}  // namespace

void add_control(Table& table) { table.add("If", {.run = if_of}); }

}  // namespace concord::onnx
