// Names, constants and sizes of the graph that is written.
#include "concord/onnx/export/graph_writer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "concord/core/check.hpp"

namespace concord::onnx {

Attribute whole(std::string name, std::int64_t value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeType::i;
  attribute.i = value;
  return attribute;
}

Attribute wholes(std::string name, std::vector<std::int64_t> values) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeType::ints;
  attribute.ints = std::move(values);
  return attribute;
}

Attribute real(std::string name, float value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeType::f;
  attribute.f = value;
  return attribute;
}

Attribute text(std::string name, std::string value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeType::s;
  attribute.s = std::move(value);
  return attribute;
}

ElementType element_of(DType type) {
  switch (type) {
    case DType::f32: return ElementType::f32;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    case DType::i32: return ElementType::i32;
    case DType::u8: return ElementType::u8;
  }
  throw ArgumentError("unknown element type");
}

std::string GraphWriter::unique(std::string name) {
  if (taken_.insert(name).second) return name;
  int& suffix = next_suffix_[name];
  for (;;) {
    std::string other = fmt::format("{}_{}", name, ++suffix);
    if (taken_.insert(other).second) return other;
  }
}

Names GraphWriter::add(std::string op, Names inputs, Attributes attributes, std::size_t outputs,
                       const std::string& prefix) {
  NodeDef node;
  node.op_type = std::move(op);
  node.inputs = std::move(inputs);
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();  // absent optional inputs
  node.attributes = std::move(attributes);
  for (std::size_t k = 0; k < outputs; ++k) node.outputs.push_back(unique(prefix + "/" + node.op_type));
  node.name = node.outputs.front();
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

bool GraphWriter::rename(const std::string& from, const std::string& to, std::size_t first_node) {
  bool is_found = false;
  for (std::size_t i = first_node; i < graph_.nodes.size(); ++i) {
    NodeDef& node = graph_.nodes[i];
    const auto output = std::ranges::find(node.outputs, from);
    if (output != node.outputs.end()) {
      is_found = true;
      *output = to;
      if (output == node.outputs.begin()) node.name = to;
    }
    if (is_found) std::ranges::replace(node.inputs, from, to);
  }
  return is_found;
}

std::string GraphWriter::constant(const char* kind, ElementType type, std::vector<std::int64_t> dims,
                                  std::span<const std::byte> bytes) {
  std::string key = fmt::format("{}{}:", static_cast<int>(type), fmt::join(dims, "x"));
  key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string& name = constants_[key];
  if (name.empty()) {
    name = unique(fmt::format("constant.{}", kind));
    TensorProto tensor;
    tensor.name = name;
    tensor.dims = std::move(dims);
    tensor.type = type;
    tensor.data = bytes_of(bytes);
    graph_.initializers.push_back(std::move(tensor));
  }
  return name;
}

std::string GraphWriter::number(float value) {
  return constant("number", ElementType::f32, {}, std::as_bytes(std::span(&value, 1)));
}

std::string GraphWriter::integer(std::int64_t value) {
  return constant("integer", ElementType::i64, {}, std::as_bytes(std::span(&value, 1)));
}

std::string GraphWriter::integers(const std::vector<std::int64_t>& values) {
  return constant("integers", ElementType::i64, {static_cast<std::int64_t>(values.size())},
                  std::as_bytes(std::span(values)));
}

std::string GraphWriter::tensor(const Shape& shape, std::span<const float> values) {
  return constant("tensor", ElementType::f32, {shape.dims().begin(), shape.dims().end()}, std::as_bytes(values));
}

void GraphWriter::initializer(const std::string& name, const Tensor& value) {
  TensorProto tensor;
  tensor.name = name;
  tensor.dims.assign(value.shape().dims().begin(), value.shape().dims().end());
  tensor.type = element_of(value.dtype());
  const auto holder = std::make_shared<Tensor>(value);
  tensor.data = {holder, std::as_const(*holder).bytes()};
  graph_.initializers.push_back(std::move(tensor));
}

std::string GraphWriter::batch() {
  if (batch_.empty()) {
    const std::string shape = add("Shape", {batch_input_}, {}, 1, "batch").front();
    batch_ = add("Gather", {shape, integers({0})}, {whole("axis", 0)}, 1, "batch").front();
  }
  return batch_;
}

std::string GraphWriter::sizes(const Sizes& sizes) {
  if (is_fixed(sizes)) {
    const Shape shape = shape_of(sizes);
    return integers({shape.dims().begin(), shape.dims().end()});
  }
  Names parts;
  std::vector<std::int64_t> numbers;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(integers(numbers));
    numbers.clear();
  };
  for (const Size& size : sizes) {
    if (!size.free) {
      numbers.push_back(size.number);
      continue;
    }
    flush();
    parts.push_back(size.number == 1 ? batch()
                                     : add("Mul", {batch(), integers({size.number})}, {}, 1, "batch").front());
  }
  flush();
  return parts.size() == 1 ? parts[0] : add("Concat", parts, {whole("axis", 0)}, 1, "sizes").front();
}

std::string GraphWriter::reshape_target(const Sizes& from, const Sizes& to) {
  std::vector<std::int64_t> target;
  int open = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!to[i].free) {
      target.push_back(to[i].number);
    } else if (i < from.size() && from[i] == to[i]) {
      target.push_back(0);  // as it was
    } else {
      target.push_back(-1);
      ++open;
    }
  }
  return open > 1 ? sizes(to) : integers(target);
}

namespace {

/// Whether a file may leave out all outputs but the first; TopK, for one, must have both.
bool has_optional_outputs(const NodeDef& node) {
  constexpr std::string_view kOperators[] = {"GRU", "LSTM", "MaxPool", "RNN"};
  return std::ranges::find(kOperators, node.op_type) != std::end(kOperators);
}

}  // namespace

GraphDef GraphWriter::finish(std::vector<ValueInfo> inputs, std::vector<ValueInfo> outputs, std::string name) && {
  std::unordered_set<std::string> needed;
  for (const ValueInfo& output : outputs) needed.insert(output.name);
  for (const ValueInfo& input : inputs) needed.insert(input.name);  // defaults of inputs stay
  std::vector<NodeDef> kept;
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    const auto is_needed = [&](const std::string& output) { return needed.contains(output); };
    if (std::ranges::none_of(node->outputs, is_needed)) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    while (has_optional_outputs(*node) && node->outputs.size() > 1 && !is_needed(node->outputs.back())) {
      node->outputs.pop_back();
    }
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph_.nodes = std::move(kept);
  std::erase_if(graph_.initializers, [&](const TensorProto& tensor) { return !needed.contains(tensor.name); });
  graph_.inputs = std::move(inputs);
  graph_.outputs = std::move(outputs);
  graph_.name = std::move(name);
  return std::move(graph_);
}

}  // namespace concord::onnx
