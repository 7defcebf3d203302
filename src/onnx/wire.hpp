// The wire format of ONNX: plain structs for what a .onnx file has, and functions that read and write them. The import
// and the export use it. Reading trusts nothing; it knows nothing of operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/onnx/element_type.hpp"

namespace concord::onnx {

/// Bits of one element; 0 for strings and for a number without a name.
[[nodiscard]] std::size_t bits_of(ElementType type);

/// Bytes that somebody else holds, and the holder, which they keep alive: the image of a file, or a Tensor.
struct Bytes {
  std::shared_ptr<const void> holder = {};
  std::span<const std::byte> data = {};
};
/// A copy of `bytes` with its own holder.
[[nodiscard]] Bytes bytes_of(std::span<const std::byte> bytes);

struct TensorProto {
  std::string name = {};
  std::vector<std::int64_t> dims = {};
  ElementType type = ElementType::undefined;
  Bytes data = {};  // row-major, little-endian; 4-bit elements two to a byte, the first in the low half
  std::vector<std::string> strings = {};  // instead of data, for ElementType::string
  /// The product of the dimensions. Reading has checked that it fits the data.
  [[nodiscard]] std::int64_t elements() const;
};

/// A sparse tensor: `values` at `indices`, which have one number (a row-major position) or one for each dimension.
struct SparseTensorProto {
  TensorProto values = {}, indices = {};
  std::vector<std::int64_t> dims = {};
};

/// AttributeProto.AttributeType; the numbers are those of the file.
enum class AttributeType : std::int32_t {
  undefined = 0,
  f = 1,
  i = 2,
  s = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,   // its message as it is, in `s`
  type_protos = 14,  // in `strings`
};

struct GraphDef;

/// The graphs of an attribute. A graph has nodes, which have attributes: so this list holds a type that is not complete
/// yet.
class GraphList {
 public:
  GraphList();
  GraphList(const GraphList& other);
  GraphList(GraphList&& other) noexcept;
  GraphList& operator=(GraphList other) noexcept;
  ~GraphList();

  void push_back(GraphDef graph);
  GraphDef& emplace_back();
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] GraphDef& operator[](std::size_t i);
  [[nodiscard]] const GraphDef& operator[](std::size_t i) const;
  [[nodiscard]] GraphDef* begin();
  [[nodiscard]] GraphDef* end();
  [[nodiscard]] const GraphDef* begin() const;
  [[nodiscard]] const GraphDef* end() const;

 private:
  std::unique_ptr<std::vector<GraphDef>> graphs_;  // null: none
};

struct Attribute {
  std::string name = {};
  AttributeType type = AttributeType::undefined;
  float f = 0;
  std::int64_t i = 0;
  std::string s = {};
  std::vector<float> floats = {};
  std::vector<std::int64_t> ints = {};
  std::vector<std::string> strings = {};
  std::vector<TensorProto> tensors = {};  // one element for AttributeType::tensor
  GraphList graphs = {};                  // one element for AttributeType::graph
  std::vector<SparseTensorProto> sparse_tensors = {};
  std::string reference = {};  // in a function: the attribute of the call whose value it takes (ref_attr_name)
};

struct NodeDef {
  std::string name = {}, op_type = {}, domain = {}, overload = {};
  std::vector<std::string> inputs = {}, outputs = {};  // an empty name is an optional one that is absent
  std::vector<Attribute> attributes = {};
  std::string doc = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
  [[nodiscard]] const Attribute* find(std::string_view attribute) const;
};

/// One dimension: a size, a name of a free size, or neither.
struct Dimension {
  std::optional<std::int64_t> size = std::nullopt;
  std::string name = {};
};

/// What a value is declared to be. For a sequence, map, optional or sparse value `type` is undefined and `other` says
/// it.
struct ValueInfo {
  std::string name = {};
  ElementType type = ElementType::undefined;
  std::optional<std::vector<Dimension>> shape = std::nullopt;  // nothing: even the rank is free
  std::string other = {};                                      // "sequence", "map", "optional", "sparse tensor"
  std::string doc = {};
};

struct GraphDef {
  std::string name = {}, doc = {};
  std::vector<NodeDef> nodes = {};
  std::vector<TensorProto> initializers = {};
  std::vector<SparseTensorProto> sparse_initializers = {};
  std::vector<ValueInfo> inputs = {}, outputs = {}, values = {};
};

struct OpsetId {
  std::string domain = {};  // empty: ai.onnx
  std::int64_t version = 0;
};

/// A local function: a node of this name and domain is an instance of its nodes.
struct FunctionDef {
  std::string name = {}, domain = {}, overload = {}, doc = {};
  std::vector<std::string> inputs = {}, outputs = {};
  std::vector<std::string> attributes = {};  // without a default
  std::vector<Attribute> defaults = {};
  std::vector<NodeDef> nodes = {};
  std::vector<OpsetId> opsets = {};
  std::vector<ValueInfo> values = {};
};

using Bindings = std::vector<std::pair<std::string, std::string>>;

struct TrainingInfo {
  GraphDef initialization = {}, algorithm = {};
  Bindings initialization_bindings = {}, update_bindings = {};
};

struct Model {
  std::int64_t ir_version = 0;
  std::string producer = {}, producer_version = {}, domain = {}, doc = {};
  std::int64_t model_version = 0;
  GraphDef graph = {};
  std::vector<OpsetId> opsets = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
  std::vector<TrainingInfo> training = {};
  std::vector<FunctionDef> functions = {};
};

/// Reads a .onnx file, with the data that it keeps in other files; those must lie in its folder or below it, where
/// symbolic links are followed first. Throws IoError, and FormatError with the file and the byte.
[[nodiscard]] Model read_model(const std::filesystem::path& path);
/// Reads a model from memory. `file` is its name for messages. External data is looked for in `folder`; without a
/// folder it is an error.
[[nodiscard]] Model parse_model(std::shared_ptr<const std::string> image, const std::string& file,
                                const std::filesystem::path& folder = {});
/// Reads a file with one TensorProto, such as the inputs of ONNX's test cases.
[[nodiscard]] TensorProto read_tensor(const std::filesystem::path& path);

/// The model in wire format. Throws ArgumentError at 2 GiB and more, which no reader accepts.
[[nodiscard]] std::string serialise(const Model& model);
[[nodiscard]] std::string serialise(const TensorProto& tensor);

struct WriteOptions {
  /// The name of a file beside the model for the data of large initialisers. Empty: all data is in the model, which
  /// ends at 2 GiB.
  std::string external_data = {};
  std::size_t external_from = 1024;  // bytes of an initialiser that goes there
};
/// Writes the files completely or not at all, the data before the model. Throws IoError, and ArgumentError as
/// serialise.
void write_model(const std::filesystem::path& path, const Model& model, const WriteOptions& options = {});

}  // namespace concord::onnx
