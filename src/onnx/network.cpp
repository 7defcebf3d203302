// onnx::Network: loads a file and traces it.
#include "concord/onnx/network.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/onnx/cut.hpp"
#include "concord/onnx/interpreter.hpp"
#include "concord/onnx/support.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {

struct Network::Impl {
  std::string file;
  Model model;
  std::map<std::string, HostTensor> known = {};
  std::vector<Declaration> inputs = {}, outputs = {};
  std::unique_ptr<Expansion> expansion = nullptr;  // from the first trace on
  std::map<const TensorProto*, VariablePtr> parameters = {};
};

namespace {

void expect_declared(const std::string& file, const Declaration& declared, const Value& value) {
  CONCORD_CHECK(value.dtype() == dtype_of(declared.type), ArgumentError,
                "{}: the input '{}' is {}, for which Concord takes {}, but got {}", file, declared.name, declared.str(),
                concord::name_of(dtype_of(declared.type)), value.spec().str());
  if (!declared.shape) return;
  bool fits = declared.shape->size() == value.shape().rank();
  for (std::size_t i = 0; fits && i < declared.shape->size(); ++i) {
    const std::int64_t size = (*declared.shape)[i].size;
    fits = size < 0 || size == value.shape().dims()[i];
  }
  CONCORD_CHECK(fits, ShapeError, "{}: the input '{}' is declared as {}, but got {}", file, declared.name,
                declared.str(), value.spec().str());
}

std::string list_of(const std::vector<Missing>& missing) {
  std::string text;
  for (const Missing& one : missing) {
    if (one.in_branch) continue;
    text += fmt::format("\n  {}{}: {}", printable(one.operation),
                        one.node.empty() ? "" : fmt::format(" '{}'", printable(one.node)), one.reason);
  }
  return text;
}

}  // namespace

Network::Network(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
const std::vector<Declaration>& Network::inputs() const { return impl_->inputs; }
const std::vector<Declaration>& Network::outputs() const { return impl_->outputs; }

std::vector<std::string> Network::input_names() const {
  std::vector<std::string> names;
  for (const Declaration& input : impl_->inputs) names.push_back(input.name);
  return names;
}

std::vector<std::string> Network::shape_inputs() const {
  std::set<std::string> known;
  for (const auto& [name, value] : impl_->known) known.insert(name);
  return shape_inputs_of(impl_->model, known);
}

Values Network::forward_values(const Values& inputs) {
  CONCORD_CHECK(!inputs.empty(), ArgumentError, "{}: no input was given", impl_->file);
  return interpret(inputs[0].graph(), inputs);
}

Values Network::trace(Graph& graph, const Values& inputs) {
  const Tracing tracing(graph, *this);
  return interpret(graph, inputs.named(input_names()));
}

Values Network::interpret(Graph& graph, const Values& inputs) {
  Impl& impl = *impl_;
  const auto parameter_of = [&](const Operand& operand) {
    VariablePtr& variable = impl.parameters[operand.weight];
    if (!variable) {
      variable = make_parameter(Shape(operand.weight->dims), {}, !operand.is_statistic);
      variable->value = float_tensor_of(*operand.weight);
    }
    return parameter(graph, variable, operand.name);
  };
  if (!impl.expansion) impl.expansion = std::make_unique<Expansion>(impl.model);
  Interpreter interpreter(graph, impl.model, *impl.expansion, impl.file, parameter_of);
  NameScope scope{nullptr, {}, {}, &impl.model.opsets};
  for (const auto& [name, host] : impl.known) scope.names[name] = operand_of(host);
  for (const Declaration& input : impl.inputs) {
    const Value value = inputs.find(input.name);
    CONCORD_CHECK(value, ArgumentError, "{}: the input '{}' ({}) is missing; got {}", impl.file, input.name,
                  input.str(), inputs.names());
    expect_declared(impl.file, input, value);
    scope.names[input.name] = operand_of(value, input.type);
  }
  interpreter.run(impl.model.graph, scope);
  Values outputs;
  for (const Declaration& output : impl.outputs) {
    const OperandPtr operand = scope.find(output.name);
    CONCORD_CHECK(operand, FormatError, "{}, byte 0: no node computes the output '{}'", impl.file,
                  printable(output.name));
    const Value value = interpreter.value_of(*operand);
    CONCORD_CHECK(output.type == ElementType::undefined || value.dtype() == dtype_of(output.type), FormatError,
                  "{}, byte 0: the output '{}' is declared as {}, but its nodes give {}", impl.file,
                  printable(output.name), output.str(), onnx::name_of(operand->type));
    outputs.add(output.name, value);
  }
  return outputs;
}

Network load(const std::filesystem::path& path, const LoadOptions& options) {
  auto impl = std::make_shared<Network::Impl>();
  impl->file = path.string();
  impl->model = read_complete_model(path);
  if (!options.outputs.empty()) cut_at(impl->model.graph, options.outputs, impl->file);
  const std::vector<Missing> missing = missing_of(impl->model);
  const std::string list = list_of(missing);
  CONCORD_CHECK(list.empty(), NotSupported, "{} asks for what Concord does not support:{}", impl->file, list);
  std::set<std::string> known;
  for (const auto& [name, value] : options.known) {
    const auto& inputs = impl->model.graph.inputs;
    const auto info = std::ranges::find(inputs, name, &ValueInfo::name);
    CONCORD_CHECK(info != inputs.end(), ArgumentError, "{}: the known value '{}' is no input of the file", impl->file,
                  printable(name));
    CONCORD_CHECK(value.dtype() == dtype_of(info->type), ArgumentError,
                  "{}: the known value '{}' is {}, for which Concord takes {}, but got {}", impl->file, name,
                  declaration_of(*info).str(), concord::name_of(dtype_of(info->type)), value.spec().str());
    impl->known.emplace(name, host_tensor_of(value, info->type));
    known.insert(name);
  }
  impl->inputs = open_inputs(impl->model.graph, known);
  for (const ValueInfo& info : impl->model.graph.outputs) impl->outputs.push_back(declaration_of(info));
  return Network(std::move(impl));
}

}  // namespace concord::onnx
