// Finds what is not supported: see support.hpp.
#include "concord/onnx/support.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/onnx/interpreter.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

std::string full_name(const NodeDef& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

bool is_named_like(const std::string& name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

// Why an operator that is in no version of the table is not there.
std::string reason_of_absence(const NodeDef& node) {
  const std::string& name = node.op_type;
  if (node.domain == "ai.onnx.ml") return "operators of classical machine learning are not supported";
  if (!node.domain.empty()) return fmt::format("Concord has no operators of the domain '{}'", printable(node.domain));
  if (name == "Loop" || name == "Scan") return "loops over nodes are not supported";
  if (is_named_like(name, {"Sequence"})) return "sequences are not supported";
  if (is_named_like(name, {"Optional"})) return "optional values are not supported";
  if (is_named_like(name, {"String", "TfIdf", "RegexFullMatch"})) return "strings are not supported";
  if (is_named_like(name, {"QLinear", "Quantize", "Integer"})) return "quantised operators are not supported";
  return "Concord has no such operator";
}

// Walks through all nodes, those of branches and of functions too.
class Search {
 public:
  explicit Search(const Model& model) : model_(model) {}

  void visit(const GraphDef& graph, const std::vector<OpsetId>& opsets, bool in_branch) {
    for (const TensorProto& tensor : graph.initializers) visit_type(tensor.type, "initialiser", tensor.name, in_branch);
    for (const SparseTensorProto& tensor : graph.sparse_initializers) {
      add({tensor.values.name, "sparse initialiser", "sparse tensors are not supported", in_branch});
    }
    visit(graph.nodes, opsets, in_branch);
  }

  void visit_declaration(const ValueInfo& info) {
    if (!info.other.empty()) {
      add({info.name, "input", fmt::format("a value that is a {} is not supported", info.other), false});
    } else {
      visit_type(info.type, "input", info.name, false);
    }
  }

  void add(Missing missing) { found.push_back(std::move(missing)); }

  std::vector<Missing> found = {};

 private:
  void visit_type(ElementType type, const char* what, const std::string& name, bool in_branch) {
    try {
      (void)dtype_of(type);
    } catch (const NotSupported& error) {
      add({name, what, error.what(), in_branch});
    }
  }

  void visit(const std::vector<NodeDef>& nodes, const std::vector<OpsetId>& opsets, bool in_branch) {
    for (const NodeDef& node : nodes) visit(node, opsets, in_branch);
  }

  void visit(const NodeDef& node, const std::vector<OpsetId>& opsets, bool in_branch) {
    const auto refuse = [&](std::string reason) {
      const std::string name = !node.name.empty() ? node.name : node.outputs.empty() ? "" : node.outputs[0];
      add({name, full_name(node), std::move(reason), in_branch});
    };
    if (const FunctionDef* const function = function_of(model_, node)) {
      if (std::ranges::find(within_, function) != within_.end()) return refuse("the function calls itself");
      if (within_.size() >= kDeepestFunction) {
        return refuse(fmt::format("more than {} functions call each other", kDeepestFunction));
      }
      // Once each: functions that call others twice have no end. What a branch asks for may be in vain elsewhere too.
      if (seen_.contains({function, false}) || !seen_.emplace(function, in_branch).second) return;
      within_.push_back(function);
      visit(function->nodes, function->opsets, in_branch);
      within_.pop_back();
      return;
    }
    const std::int64_t opset = opset_of(opsets, node.domain);
    const OperatorEntry* const entry = Table::all().find(node.domain, node.op_type, opset);
    if (entry == nullptr) {
      const OperatorEntry* const later = Table::all().find(node.domain, node.op_type, 1 << 30);
      refuse(later == nullptr ? reason_of_absence(node)
                              : fmt::format("version {} of its operator set does not have it yet", opset));
    } else if (entry->check != nullptr) {
      if (std::string reason = entry->check(node); !reason.empty()) refuse(std::move(reason));
    }
    if (node.op_type != "If") return;  // other nodes with graphs are not supported as such
    for (const Attribute& attribute : node.attributes) {
      for (const GraphDef& branch : attribute.graphs) visit(branch, opsets, true);
    }
  }

  const Model& model_;
  std::vector<const FunctionDef*> within_ = {};
  std::set<std::pair<const FunctionDef*, bool>> seen_ = {};  // outside of branches, and within them
};

bool has_initializer(const GraphDef& graph, const std::string& name) {
  return std::ranges::find(graph.initializers, name, &TensorProto::name) != graph.initializers.end();
}

// An operator set must be named since version 3 of the format.
void complete(Model& model, const std::string& file) {
  CONCORD_CHECK(!model.opsets.empty() || model.ir_version < 3, FormatError,
                "{}, byte 0: it names no operator set: the file is damaged or incomplete", file);
  if (opset_of(model.opsets, "") == 0) model.opsets.push_back({"", 1});
}

void collect_producers(const GraphDef& graph, std::unordered_map<std::string, const NodeDef*>& producers) {
  for (const NodeDef& node : graph.nodes) {
    for (const std::string& output : node.outputs) producers.emplace(output, &node);
  }
}

}  // namespace

std::vector<Missing> missing_of(const Model& model) {
  Search search(model);
  const std::int64_t opset = opset_of(model.opsets, "");
  if (opset > Table::kNewestOpset) {
    search.add({"", "opset", fmt::format("the operator set {} is newer than {}", opset, Table::kNewestOpset), false});
  }
  for (const ValueInfo& input : model.graph.inputs) search.visit_declaration(input);
  search.visit(model.graph, model.opsets, false);
  return std::move(search.found);
}

std::vector<std::string> shape_inputs_of(const Model& model, const std::set<std::string>& known) {
  std::unordered_map<std::string, const NodeDef*> producers;
  collect_producers(model.graph, producers);
  std::vector<std::string> open;
  for (const NodeDef& node : model.graph.nodes) {
    const auto* const entry = Table::all().find(node.domain, node.op_type, opset_of(model.opsets, node.domain));
    if (entry == nullptr) continue;
    for (const std::size_t i : entry->known) {
      if (i < node.inputs.size()) open.push_back(node.inputs[i]);
    }
  }
  std::set<std::string> reached;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (name.empty() || !reached.insert(name).second) continue;
    const auto producer = producers.find(name);
    if (producer == producers.end() || producer->second->op_type == "Shape" || producer->second->op_type == "Size") {
      continue;
    }
    open.insert(open.end(), producer->second->inputs.begin(), producer->second->inputs.end());
  }
  std::vector<std::string> inputs;
  for (const ValueInfo& input : model.graph.inputs) {
    const bool has_value =
        std::ranges::find(model.graph.initializers, input.name, &TensorProto::name) != model.graph.initializers.end();
    if (reached.contains(input.name) && !has_value && !known.contains(input.name)) inputs.push_back(input.name);
  }
  return inputs;
}

Declaration declaration_of(const ValueInfo& info) {
  Declaration declaration{info.name, info.type, {}};
  if (!info.shape) return declaration;
  auto& sizes = declaration.shape.emplace();
  for (const Dimension& dimension : *info.shape) {
    const bool is_set = dimension.size && *dimension.size >= 0 && dimension.name.empty();
    sizes.push_back({is_set ? *dimension.size : -1, dimension.name});
  }
  return declaration;
}

std::vector<Declaration> open_inputs(const GraphDef& graph, const std::set<std::string>& known) {
  std::vector<Declaration> inputs;
  for (const ValueInfo& info : graph.inputs) {
    if (!has_initializer(graph, info.name) && !known.contains(info.name)) inputs.push_back(declaration_of(info));
  }
  return inputs;
}

Model read_complete_model(const std::filesystem::path& path) {
  Model model = read_model(path);
  complete(model, path.string());
  return model;
}

std::string Declaration::str() const {
  std::string text = onnx::name_of(type);
  if (!shape) return text + " of any shape";
  text += " [";
  for (std::size_t i = 0; i < shape->size(); ++i) {
    const Size& size = (*shape)[i];
    if (i > 0) text += ", ";
    text += size.size >= 0 ? std::to_string(size.size) : size.name.empty() ? "?" : printable(size.name);
  }
  return text + "]";
}

}  // namespace concord::onnx
