// Writes models in wire format, with the data of large initialisers in a file beside them where that is asked for.
#include <protozero/pbf_writer.hpp>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {
namespace {

using Writer = protozero::pbf_writer;

// The file beside the model, while it is written.
struct DataFile {
  DataFile(const std::filesystem::path& path, std::size_t least) : name(path.filename()), from(least), file(path) {}
  std::string name;
  std::size_t from;
  AtomicFile file;
  std::uint64_t end = 0;
};
constexpr std::uint64_t kAlignment = 64;

void write_text(Writer& writer, std::uint32_t tag, const std::string& text) {
  if (!text.empty()) writer.add_string(tag, text);
}

void write_texts(Writer& writer, std::uint32_t tag, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) writer.add_string(tag, text);
}

void write_pair(Writer& parent, std::uint32_t tag, const std::string& key, const std::string& value) {
  Writer writer(parent, tag);
  writer.add_string(1, key);
  writer.add_string(2, value);
}

// Returns the offset of the bytes.
std::uint64_t append_data(DataFile& data, std::span<const std::byte> bytes) {
  const std::vector<std::byte> gap((kAlignment - data.end % kAlignment) % kAlignment);
  data.file.write(gap);
  const std::uint64_t offset = data.end + gap.size();
  data.file.write(bytes);
  data.end = offset + bytes.size();
  return offset;
}

void write_tensor(Writer& writer, const TensorProto& tensor, DataFile* data) {
  writer.add_packed_int64(1, tensor.dims.begin(), tensor.dims.end());
  writer.add_int32(2, static_cast<std::int32_t>(tensor.type));
  for (const std::string& text : tensor.strings) writer.add_bytes(6, text);
  write_text(writer, 8, tensor.name);
  if (tensor.type == ElementType::string) return;
  const std::span<const std::byte> bytes = tensor.data.data;
  if (data == nullptr || bytes.size() < data->from) {
    writer.add_bytes(9, reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  const std::uint64_t offset = append_data(*data, bytes);
  write_pair(writer, 13, "location", data->name);
  write_pair(writer, 13, "offset", std::to_string(offset));
  write_pair(writer, 13, "length", std::to_string(bytes.size()));
  writer.add_int32(14, 1);
}

void write_sparse(Writer& writer, const SparseTensorProto& tensor) {
  Writer values(writer, 1);
  write_tensor(values, tensor.values, nullptr);
  values.commit();
  Writer indices(writer, 2);
  write_tensor(indices, tensor.indices, nullptr);
  indices.commit();
  writer.add_packed_int64(3, tensor.dims.begin(), tensor.dims.end());
}

void write_value(Writer& writer, const ValueInfo& info) {
  writer.add_string(1, info.name);
  write_text(writer, 3, info.doc);
  if (info.type == ElementType::undefined) return;
  Writer type(writer, 2);
  Writer tensor(type, 1);
  tensor.add_int32(1, static_cast<std::int32_t>(info.type));
  if (!info.shape) return;
  // A writer drops messages without a field, which a free size and the shape of a single number are.
  std::string sizes;
  Writer shape(sizes);
  for (const Dimension& dimension : *info.shape) {
    std::string bytes;
    Writer dim(bytes);
    if (dimension.size) dim.add_int64(1, *dimension.size);
    write_text(dim, 2, dimension.name);
    shape.add_message(1, bytes);
  }
  tensor.add_message(2, sizes);
}

void write_graph(Writer& writer, const GraphDef& graph, DataFile* data);

void write_attribute(Writer& writer, const Attribute& attribute) {
  writer.add_string(1, attribute.name);
  writer.add_int32(20, static_cast<std::int32_t>(attribute.type));
  if (!attribute.reference.empty()) {
    writer.add_string(21, attribute.reference);
    return;
  }
  const auto write_tensors = [&](std::uint32_t tag) {
    for (const TensorProto& tensor : attribute.tensors) {
      Writer child(writer, tag);
      write_tensor(child, tensor, nullptr);
    }
  };
  const auto write_graphs = [&](std::uint32_t tag) {
    for (const GraphDef& graph : attribute.graphs) {
      Writer child(writer, tag);
      write_graph(child, graph, nullptr);
    }
  };
  const auto write_sparses = [&](std::uint32_t tag) {
    for (const SparseTensorProto& tensor : attribute.sparse_tensors) {
      Writer child(writer, tag);
      write_sparse(child, tensor);
    }
  };
  switch (attribute.type) {
    case AttributeType::f: return writer.add_float(2, attribute.f);
    case AttributeType::i: return writer.add_int64(3, attribute.i);
    case AttributeType::s: return writer.add_bytes(4, attribute.s);
    case AttributeType::tensor: return write_tensors(5);
    case AttributeType::graph: return write_graphs(6);
    // The schema declares these lists unpacked.
    case AttributeType::floats:
      for (const float value : attribute.floats) writer.add_float(7, value);
      return;
    case AttributeType::ints:
      for (const std::int64_t value : attribute.ints) writer.add_int64(8, value);
      return;
    case AttributeType::strings:
      for (const std::string& text : attribute.strings) writer.add_bytes(9, text);
      return;
    case AttributeType::tensors: return write_tensors(10);
    case AttributeType::graphs: return write_graphs(11);
    case AttributeType::sparse_tensor: return write_sparses(22);
    case AttributeType::sparse_tensors: return write_sparses(23);
    case AttributeType::type_proto: return writer.add_message(14, attribute.s);
    case AttributeType::type_protos:
      for (const std::string& type : attribute.strings) writer.add_message(15, type);
      return;
    default: throw ArgumentError(fmt::format("cannot write the attribute '{}': it has no type", attribute.name));
  }
}

void write_node(Writer& writer, const NodeDef& node) {
  write_texts(writer, 1, node.inputs);
  write_texts(writer, 2, node.outputs);
  write_text(writer, 3, node.name);
  writer.add_string(4, node.op_type);
  for (const Attribute& attribute : node.attributes) {
    Writer child(writer, 5);
    write_attribute(child, attribute);
  }
  write_text(writer, 6, node.doc);
  write_text(writer, 7, node.domain);
  write_text(writer, 8, node.overload);
  for (const auto& [key, value] : node.metadata) write_pair(writer, 9, key, value);
}

void write_values(Writer& writer, std::uint32_t tag, const std::vector<ValueInfo>& values) {
  for (const ValueInfo& value : values) {
    Writer child(writer, tag);
    write_value(child, value);
  }
}

void write_nodes(Writer& writer, std::uint32_t tag, const std::vector<NodeDef>& nodes) {
  for (const NodeDef& node : nodes) {
    Writer child(writer, tag);
    write_node(child, node);
  }
}

void write_graph(Writer& writer, const GraphDef& graph, DataFile* data) {
  write_nodes(writer, 1, graph.nodes);
  write_text(writer, 2, graph.name);
  for (const TensorProto& tensor : graph.initializers) {
    Writer child(writer, 5);
    write_tensor(child, tensor, data);
  }
  write_text(writer, 10, graph.doc);
  write_values(writer, 11, graph.inputs);
  write_values(writer, 12, graph.outputs);
  write_values(writer, 13, graph.values);
  for (const SparseTensorProto& tensor : graph.sparse_initializers) {
    Writer child(writer, 15);
    write_sparse(child, tensor);
  }
}

void write_opsets(Writer& writer, std::uint32_t tag, const std::vector<OpsetId>& opsets) {
  for (const OpsetId& opset : opsets) {
    Writer child(writer, tag);
    child.add_string(1, opset.domain);
    child.add_int64(2, opset.version);
  }
}

void write_function(Writer& writer, const FunctionDef& function) {
  writer.add_string(1, function.name);
  write_texts(writer, 4, function.inputs);
  write_texts(writer, 5, function.outputs);
  write_texts(writer, 6, function.attributes);
  write_nodes(writer, 7, function.nodes);
  write_text(writer, 8, function.doc);
  write_opsets(writer, 9, function.opsets);
  write_text(writer, 10, function.domain);
  for (const Attribute& attribute : function.defaults) {
    Writer child(writer, 11);
    write_attribute(child, attribute);
  }
  write_values(writer, 12, function.values);
  write_text(writer, 13, function.overload);
}

void write_training(Writer& writer, const TrainingInfo& training) {
  Writer initialization(writer, 1);
  write_graph(initialization, training.initialization, nullptr);
  initialization.commit();
  Writer algorithm(writer, 2);
  write_graph(algorithm, training.algorithm, nullptr);
  algorithm.commit();
  for (const auto& [key, value] : training.initialization_bindings) write_pair(writer, 3, key, value);
  for (const auto& [key, value] : training.update_bindings) write_pair(writer, 4, key, value);
}

// The bytes of data that go into the model itself: checked before memory is taken for them.
std::uint64_t inner_bytes(const GraphDef& graph, const DataFile* data) {
  std::uint64_t bytes = 0;
  for (const TensorProto& tensor : graph.initializers) {
    if (data == nullptr || tensor.data.data.size() < data->from) bytes += tensor.data.data.size();
  }
  return bytes;
}

std::string serialise_with(const Model& model, DataFile* data) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
  constexpr const char* kTooLarge =
      "an ONNX model ends at 2 GiB, and this one has more: write its data to a file of its own";
  CONCORD_CHECK(inner_bytes(model.graph, data) <= kMost, ArgumentError, "{}", kTooLarge);
  std::string bytes;
  Writer writer(bytes);
  writer.add_int64(1, model.ir_version);
  write_text(writer, 2, model.producer);
  write_text(writer, 3, model.producer_version);
  write_text(writer, 4, model.domain);
  if (model.model_version != 0) writer.add_int64(5, model.model_version);
  write_text(writer, 6, model.doc);
  const std::size_t before = bytes.size();
  {
    Writer graph(writer, 7);
    write_graph(graph, model.graph, data);
  }
  if (bytes.size() == before) writer.add_message(7, "", 0);
  write_opsets(writer, 8, model.opsets);
  for (const auto& [key, value] : model.metadata) write_pair(writer, 14, key, value);
  for (const TrainingInfo& training : model.training) {
    Writer child(writer, 20);
    write_training(child, training);
  }
  for (const FunctionDef& function : model.functions) {
    Writer child(writer, 25);
    write_function(child, function);
  }
  CONCORD_CHECK(bytes.size() <= kMost, ArgumentError, "{}", kTooLarge);
  return bytes;
}

}  // namespace

std::string serialise(const Model& model) { return serialise_with(model, nullptr); }

std::string serialise(const TensorProto& tensor) {
  std::string bytes;
  Writer writer(bytes);
  write_tensor(writer, tensor, nullptr);
  return bytes;
}

void write_model(const std::filesystem::path& path, const Model& model, const WriteOptions& options) {
  std::optional<DataFile> data;
  if (!options.external_data.empty()) {
    const std::filesystem::path name = options.external_data;
    CONCORD_CHECK(name.filename() == name && name != path.filename(), ArgumentError,
                  "external data goes into a file beside the model, not to '{}'", options.external_data);
    data.emplace(path.parent_path() / name, options.external_from);
  }
  const std::string bytes = serialise_with(model, data ? &*data : nullptr);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  if (data) data->file.commit();  // a full disk has shown itself by now
  file.commit();
}

}  // namespace concord::onnx
