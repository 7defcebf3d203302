// Reads models: the messages of onnx.proto into the structs of wire.hpp. A field that they lack is skipped.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/onnx/tensor_data.hpp"

namespace concord::onnx {
namespace {

SparseTensorProto read_sparse(const Source& source, Message message) {
  SparseTensorProto tensor;
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) tensor.values = read_tensor_message(source, message.message("TensorProto"));
    if (tag == 2) tensor.indices = read_tensor_message(source, message.message("TensorProto"));
    if (tag == 3) message.append(tensor.dims);
  });
  return tensor;
}

Dimension read_dimension(Message message) {
  Dimension dimension;
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) dimension.size = message.integer();
    if (tag == 2) dimension.name = message.text();
  });
  return dimension;
}

void read_tensor_type(Message message, ValueInfo& info) {
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) {
      info.type = static_cast<ElementType>(std::clamp<std::int64_t>(message.integer(), -1, 1 << 30));
    }
    if (tag == 2) {
      Message shape = message.message("TensorShapeProto");
      auto& dimensions = info.shape.emplace();
      shape.each_field([&](std::uint32_t part) {
        if (part == 1) dimensions.push_back(read_dimension(shape.message("Dimension")));
      });
    }
  });
}

void read_type(Message message, ValueInfo& info) {
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: return read_tensor_type(message.message("TypeProto.Tensor"), info);
      case 4: info.other = "sequence"; return;
      case 5: info.other = "map"; return;
      case 8: info.other = "sparse tensor"; return;
      case 9: info.other = "optional"; return;
      default: return;
    }
  });
}

ValueInfo read_value(Message message) {
  ValueInfo info;
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) info.name = message.text();
    if (tag == 2) read_type(message.message("TypeProto"), info);
    if (tag == 3) info.doc = message.text();
  });
  return info;
}

GraphDef read_graph(const Source& source, Message message);

// IR version 1 has no type: it is that of the field that is there.
AttributeType type_of_content(const Attribute& attribute, AttributeType single) {
  if (single != AttributeType::undefined) return single;
  if (!attribute.floats.empty()) return AttributeType::floats;
  if (!attribute.strings.empty()) return AttributeType::strings;
  return AttributeType::ints;
}

Attribute read_attribute(const Source& source, Message message) {
  Attribute attribute;
  AttributeType single = AttributeType::undefined;
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: attribute.name = message.text(); return;
      case 2:
        attribute.f = message.single();
        single = AttributeType::f;
        return;
      case 3:
        attribute.i = message.integer();
        single = AttributeType::i;
        return;
      case 4:
        attribute.s = message.bytes();
        single = AttributeType::s;
        return;
      case 5: single = AttributeType::tensor; [[fallthrough]];
      case 10:
        attribute.tensors.push_back(read_tensor_message(source, message.message("TensorProto")));
        if (tag == 10) single = AttributeType::tensors;
        return;
      case 6: single = AttributeType::graph; [[fallthrough]];
      case 11:
        attribute.graphs.push_back(read_graph(source, message.message("GraphProto")));
        if (tag == 11) single = AttributeType::graphs;
        return;
      case 7: return message.append(attribute.floats);
      case 8: return message.append(attribute.ints);
      case 9: attribute.strings.push_back(message.bytes()); return;
      case 14:
        single = AttributeType::type_proto;
        attribute.s = message.bytes();
        return;
      case 15:
        single = AttributeType::type_protos;
        attribute.strings.push_back(message.bytes());
        return;
      case 20:
        attribute.type = static_cast<AttributeType>(std::clamp<std::int64_t>(message.integer(), 0, 1 << 30));
        return;
      case 21: attribute.reference = message.text(); return;
      case 22: single = AttributeType::sparse_tensor; [[fallthrough]];
      case 23:
        attribute.sparse_tensors.push_back(read_sparse(source, message.message("SparseTensorProto")));
        if (tag == 23) single = AttributeType::sparse_tensors;
        return;
      default: return;
    }
  });
  message.require(!attribute.name.empty(), "has no name");
  if (attribute.type == AttributeType::undefined) attribute.type = type_of_content(attribute, single);
  const auto require_one = [&](AttributeType type, std::size_t count, const char* what) {
    message.require(attribute.type != type || count == 1 || !attribute.reference.empty(),
                    fmt::format("attribute '{}' has {} {}, not one", attribute.name, count, what));
  };
  require_one(AttributeType::tensor, attribute.tensors.size(), "tensors");
  require_one(AttributeType::graph, attribute.graphs.size(), "graphs");
  require_one(AttributeType::sparse_tensor, attribute.sparse_tensors.size(), "sparse tensors");
  return attribute;
}

NodeDef read_node(const Source& source, Message message) {
  NodeDef node;
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: node.inputs.push_back(message.text()); return;
      case 2: node.outputs.push_back(message.text()); return;
      case 3: node.name = message.text(); return;
      case 4: node.op_type = message.text(); return;
      case 5: node.attributes.push_back(read_attribute(source, message.message("AttributeProto"))); return;
      case 6: node.doc = message.text(); return;
      case 7: node.domain = message.text(); return;
      case 8: node.overload = message.text(); return;
      case 9: node.metadata.push_back(read_pair(message.message("StringStringEntryProto"))); return;
      default: return;
    }
  });
  message.require(!node.op_type.empty(), "has no op_type");
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

GraphDef read_graph(const Source& source, Message message) {
  GraphDef graph;
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: graph.nodes.push_back(read_node(source, message.message("NodeProto"))); return;
      case 2: graph.name = message.text(); return;
      case 5: {
        graph.initializers.push_back(read_tensor_message(source, message.message("TensorProto")));
        return;
      }
      case 10: graph.doc = message.text(); return;
      case 11: graph.inputs.push_back(read_value(message.message("ValueInfoProto"))); return;
      case 12: graph.outputs.push_back(read_value(message.message("ValueInfoProto"))); return;
      case 13: graph.values.push_back(read_value(message.message("ValueInfoProto"))); return;
      case 15: graph.sparse_initializers.push_back(read_sparse(source, message.message("SparseTensorProto"))); return;
      default: return;
    }
  });
  return graph;
}

OpsetId read_opset(Message message) {
  OpsetId opset;
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) opset.domain = message.text();
    if (tag == 2) opset.version = message.integer();
  });
  if (opset.domain == "ai.onnx") opset.domain.clear();
  return opset;
}

FunctionDef read_function(const Source& source, Message message) {
  FunctionDef function;
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: function.name = message.text(); return;
      case 4: function.inputs.push_back(message.text()); return;
      case 5: function.outputs.push_back(message.text()); return;
      case 6: function.attributes.push_back(message.text()); return;
      case 7: function.nodes.push_back(read_node(source, message.message("NodeProto"))); return;
      case 8: function.doc = message.text(); return;
      case 9: function.opsets.push_back(read_opset(message.message("OperatorSetIdProto"))); return;
      case 10: function.domain = message.text(); return;
      case 11: function.defaults.push_back(read_attribute(source, message.message("AttributeProto"))); return;
      case 12: function.values.push_back(read_value(message.message("ValueInfoProto"))); return;
      case 13: function.overload = message.text(); return;
      default: return;
    }
  });
  message.require(!function.name.empty(), "has no name");
  return function;
}

TrainingInfo read_training(const Source& source, Message message) {
  TrainingInfo training;
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) training.initialization = read_graph(source, message.message("GraphProto"));
    if (tag == 2) training.algorithm = read_graph(source, message.message("GraphProto"));
    if (tag == 3) training.initialization_bindings.push_back(read_pair(message.message("StringStringEntryProto")));
    if (tag == 4) training.update_bindings.push_back(read_pair(message.message("StringStringEntryProto")));
  });
  return training;
}

Source source_of(std::shared_ptr<const std::string> image, const std::string& file,
                 const std::filesystem::path& folder) {
  Source source{{file, image->data()}, nullptr, folder};
  source.holder = std::move(image);
  return source;
}

}  // namespace

Model parse_model(std::shared_ptr<const std::string> image, const std::string& file,
                  const std::filesystem::path& folder) {
  const Source source = source_of(std::move(image), file, folder);
  Message message(source.image, protozero::data_view(source.holder->data(), source.holder->size()), "ModelProto", 0);
  Model model;
  bool has_graph = false;
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: model.ir_version = message.integer(); return;
      case 2: model.producer = message.text(); return;
      case 3: model.producer_version = message.text(); return;
      case 4: model.domain = message.text(); return;
      case 5: model.model_version = message.integer(); return;
      case 6: model.doc = message.text(); return;
      case 7: {
        message.require(!has_graph, "has two graphs");
        model.graph = read_graph(source, message.message("GraphProto"));
        has_graph = true;
        return;
      }
      case 8: model.opsets.push_back(read_opset(message.message("OperatorSetIdProto"))); return;
      case 14: model.metadata.push_back(read_pair(message.message("StringStringEntryProto"))); return;
      case 20: model.training.push_back(read_training(source, message.message("TrainingInfoProto"))); return;
      case 25: model.functions.push_back(read_function(source, message.message("FunctionProto"))); return;
      default: return;
    }
  });
  message.require(has_graph, "has no graph: this is not an ONNX model");
  return model;
}

Model read_model(const std::filesystem::path& path) {
  auto image = std::make_shared<const std::string>(read_file(path));
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  return parse_model(std::move(image), path.string(), folder);
}

TensorProto read_tensor(const std::filesystem::path& path) {
  const Source source = source_of(std::make_shared<const std::string>(read_file(path)), path.string(), {});
  return read_tensor_message(
      source,
      Message(source.image, protozero::data_view(source.holder->data(), source.holder->size()), "TensorProto", 0));
}

}  // namespace concord::onnx
