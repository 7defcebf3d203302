// Call: see call.hpp.
#include "concord/onnx/call.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

// Stands for operands that a node lacks.
const OperandPtr& absent_operand() {
  static const OperandPtr absent = std::make_shared<Operand>();
  return absent;
}

}  // namespace

OperandPtr operand_of(HostTensor host) {
  auto operand = std::make_shared<Operand>();
  operand->type = host.type;
  operand->dims = host.dims;
  operand->host = std::make_shared<const HostTensor>(std::move(host));
  operand->fixed = true;
  return operand;
}

OperandPtr operand_of(Value value, ElementType type) {
  auto operand = std::make_shared<Operand>();
  operand->type = type;
  operand->dims = dims_of(value);
  operand->value = value;
  return operand;
}

Call::Call(Tracer& tracer, const NodeDef& node, std::int64_t opset, std::vector<OperandPtr> inputs, bool on_host)
    : tracer_(tracer), node_(node), opset_(opset), inputs_(std::move(inputs)), on_host_(on_host) {
  results_.resize(node.outputs.size());
}

Graph& Call::graph() const { return tracer_.graph(); }

const OperandPtr& Call::operand(std::size_t i) const { return has(i) ? inputs_[i] : absent_operand(); }

Value Call::value(std::size_t i) const {
  CONCORD_CHECK(has(i), ArgumentError, "input {} is missing", i);
  return tracer_.value_of(*inputs_[i]);
}

Value Call::number_value(std::size_t i) const {
  const Value x = value(i);
  return x.dtype() == DType::f32 ? x : cast(x, DType::f32);
}

Value Call::named_value(const std::string& name) const { return tracer_.named_value(name); }

bool Call::is_known(std::size_t i) const { return has(i) && tracer_.host_of(*inputs_[i]) != nullptr; }

bool Call::is_constant_number(std::size_t i) const {
  return is_known(i) && inputs_[i]->fixed && elements_of(inputs_[i]->dims) == 1;
}

const HostTensor& Call::host(std::size_t i) const {
  CONCORD_CHECK(has(i), ArgumentError, "input {} is missing", i);
  const HostTensor* const host = tracer_.host_of(*inputs_[i]);
  const std::string& by = inputs_[i]->not_computed_by;
  CONCORD_CHECK(host != nullptr || by.empty(), NotSupported,
                "input {} ('{}') decides the shape of a result or how it is computed, but {} is not computed while "
                "tracing",
                i, node_.inputs[i], by);
  CONCORD_CHECK(host != nullptr, NotSupported,
                "input {} ('{}') depends on data, but decides the shape of a result or how it is computed; if it "
                "follows from an input of the network, give that input as a known value",
                i, node_.inputs[i]);
  return *host;
}

Dims Call::integers(std::size_t i) const {
  const HostTensor& numbers = host(i);
  Dims all;
  for (std::int64_t k = 0; k < numbers.elements(); ++k) all.push_back(numbers.integer(static_cast<std::size_t>(k)));
  return all;
}

std::int64_t Call::integer(std::size_t i) const {
  CONCORD_CHECK(host(i).elements() == 1, ShapeError, "input {} must be a single number", i);
  return host(i).integer(0);
}

double Call::number(std::size_t i) const {
  CONCORD_CHECK(host(i).elements() == 1, ShapeError, "input {} must be a single number", i);
  return host(i).number(0);
}

void Call::reshape_operand(std::size_t i, Dims dims) {
  OperandPtr reshaped = std::make_shared<Operand>(*operand(i));
  if (const HostTensor* const host = tracer_.host_of(*inputs_[i])) {
    reshaped->host = std::make_shared<const HostTensor>(host->reshaped(dims));
  }
  if (!reshaped->fixed) reshaped->value = reshape(tracer_.value_of(*inputs_[i]), Shape(dims));
  reshaped->dims = std::move(dims);
  inputs_[i] = std::move(reshaped);
}

const Attribute* Call::typed(std::string_view name, AttributeType type) const {
  const Attribute* const attribute = node_.find(name);
  CONCORD_CHECK(attribute == nullptr || attribute->type == type, FormatError, "the attribute '{}' has another type",
                name);
  return attribute;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* const attribute = typed(name, AttributeType::i);
  return attribute != nullptr ? attribute->i : otherwise;
}

float Call::number(std::string_view name, float otherwise) const {
  const Attribute* const attribute = typed(name, AttributeType::f);
  return attribute != nullptr ? attribute->f : otherwise;
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* const attribute = typed(name, AttributeType::s);
  return attribute != nullptr ? attribute->s : std::string(otherwise);
}

std::optional<Dims> Call::integers(std::string_view name) const {
  const Attribute* const attribute = typed(name, AttributeType::ints);
  if (attribute == nullptr) return std::nullopt;
  return attribute->ints;
}

std::optional<std::vector<float>> Call::numbers(std::string_view name) const {
  const Attribute* const attribute = typed(name, AttributeType::floats);
  if (attribute == nullptr) return std::nullopt;
  return attribute->floats;
}

std::vector<std::string> Call::texts(std::string_view name) const {
  const Attribute* const attribute = typed(name, AttributeType::strings);
  return attribute != nullptr ? attribute->strings : std::vector<std::string>();
}

std::int64_t Call::required_integer(std::string_view name) const {
  CONCORD_CHECK(find(name) != nullptr, FormatError, "the attribute '{}' is missing", name);
  return integer(name, 0);
}

Dims Call::required_integers(std::string_view name) const {
  const std::optional<Dims> found = integers(name);
  CONCORD_CHECK(found, FormatError, "the attribute '{}' is missing", name);
  return *found;
}

void Call::set(std::size_t i, HostTensor host) { set(i, operand_of(std::move(host))); }

void Call::set(std::size_t i, Value value, ElementType type) {
  const DType wanted = dtype_of(type);
  set(i, operand_of(value.dtype() == wanted ? value : cast(value, wanted), type));
}

void Call::set(std::size_t i, OperandPtr operand) {
  if (i >= results_.size()) results_.resize(i + 1);  // one that nobody reads
  results_[i] = std::move(operand);
}

}  // namespace concord::onnx
