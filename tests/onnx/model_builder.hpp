// Small ONNX models for tests, built of the structs of the wire format.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "concord/onnx/wire.hpp"
#include "files.hpp"

namespace concord::test {

[[nodiscard]] onnx::TensorProto float_proto(const std::string& name, std::vector<std::int64_t> dims,
                                            const std::vector<float>& values);
[[nodiscard]] onnx::TensorProto integer_proto(const std::string& name, std::vector<std::int64_t> dims,
                                              const std::vector<std::int64_t>& values);
[[nodiscard]] onnx::Attribute attribute(const std::string& name, std::int64_t value);
[[nodiscard]] onnx::Attribute attribute(const std::string& name, float value);
[[nodiscard]] onnx::Attribute attribute(const std::string& name, std::vector<std::int64_t> values);
[[nodiscard]] onnx::Attribute attribute(const std::string& name, onnx::GraphDef graph);
[[nodiscard]] onnx::Attribute attribute(const std::string& name, onnx::TensorProto tensor);
/// A node that is named after its first output.
[[nodiscard]] onnx::NodeDef node(const std::string& op_type, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs, std::vector<onnx::Attribute> attributes = {});
/// A declaration; a size of -1 is free.
[[nodiscard]] onnx::ValueInfo declared(const std::string& name, onnx::ElementType type,
                                       const std::vector<std::int64_t>& dims);
/// An empty model of operator set 17.
[[nodiscard]] onnx::Model empty_model(std::int64_t opset = 17);

/// Writes the model to a file that lives as long as this object.
class ModelFile {
 public:
  explicit ModelFile(const onnx::Model& model) { onnx::write_model(path(), model); }
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "net.onnx"; }

 private:
  TemporaryFolder folder_;
};

}  // namespace concord::test
