// See backend_cases.hpp.
#include "onnx/backend_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "concord/onnx/host_tensor.hpp"
#include "concord/onnx/wire.hpp"
#include "onnx/onnx_test.hpp"

namespace concord::test {
namespace {

namespace fs = std::filesystem;
using onnx::ElementType;

const std::set<std::string> kOutOfScope{"If",
                                        "Loop",
                                        "Scan",
                                        "SequenceInsert",
                                        "SequenceAt",
                                        "SequenceConstruct",
                                        "SequenceEmpty",
                                        "SequenceLength",
                                        "SequenceErase",
                                        "SequenceMap",
                                        "SplitToSequence",
                                        "ConcatFromSequence",
                                        "Optional",
                                        "OptionalHasElement",
                                        "OptionalGetElement",
                                        "StringNormalizer",
                                        "TfIdfVectorizer",
                                        "QuantizeLinear",
                                        "DequantizeLinear",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "ConvInteger",
                                        "MatMulInteger",
                                        "DynamicQuantizeLinear"};

bool is_in_scope(const onnx::Model& model) {
  const auto is_plain = [](const onnx::ValueInfo& info) {
    return info.other.empty() && (info.type == ElementType::f32 || info.type == ElementType::i32 ||
                                  info.type == ElementType::i64 || info.type == ElementType::boolean);
  };
  return std::ranges::none_of(model.graph.nodes, [](const auto& node) { return kOutOfScope.contains(node.op_type); }) &&
         std::ranges::all_of(model.graph.inputs, is_plain) && std::ranges::all_of(model.graph.outputs, is_plain);
}

fs::path numbered(const fs::path& folder, const char* stem, std::size_t number) {
  return folder / fmt::format("{}_{}.pb", stem, number);
}

std::string difference_of(const Tensor& got, const onnx::TensorProto& proto) {
  const onnx::HostTensor expected = onnx::host_tensor_of(proto);
  if (got.dtype() != onnx::dtype_of(expected.type)) return fmt::format("type {}", name_of(got.dtype()));
  if (got.shape() != Shape(expected.dims))
    return fmt::format("shape {}, not {}", got.shape().str(), Shape(expected.dims).str());
  const onnx::HostTensor values = onnx::host_tensor_of(got, expected.type);
  for (std::size_t i = 0; i < static_cast<std::size_t>(expected.elements()); ++i) {
    const double a = values.number(i), b = expected.number(i);
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-7 + 1e-3 * std::abs(b);
    if (!is_same) return fmt::format("element {}: {}, not {}", i, a, b);
  }
  return {};
}

// The inputs of a data set by name; the initialised ones only if the set has them.
std::map<std::string, onnx::TensorProto> inputs_of(const onnx::GraphDef& graph, const fs::path& folder) {
  std::size_t count = 0;
  while (fs::exists(numbered(folder, "input", count))) ++count;
  std::vector<std::string> names;
  for (const auto& input : graph.inputs) {
    const bool is_initialised =
        std::ranges::find(graph.initializers, input.name, &onnx::TensorProto::name) != graph.initializers.end();
    if (!is_initialised || count == graph.inputs.size()) names.push_back(input.name);
  }
  if (names.size() != count) throw FormatError(fmt::format("{} inputs, {} files", names.size(), count));
  std::map<std::string, onnx::TensorProto> inputs;
  for (std::size_t i = 0; i < count; ++i) inputs.emplace(names[i], onnx::read_tensor(numbered(folder, "input", i)));
  return inputs;
}

std::string fault_of_set(const fs::path& model_path, const fs::path& folder, const DevicePtr& device) {
  const onnx::Model model = onnx::read_model(model_path);
  const auto recorded = inputs_of(model.graph, folder);
  const auto tensor = [&](const std::string& name) { return onnx::tensor_of(onnx::host_tensor_of(recorded.at(name))); };
  onnx::LoadOptions options;
  for (const std::string& name : onnx::load(model_path).shape_inputs()) options.known.emplace(name, tensor(name));
  onnx::Network net = onnx::load(model_path, options);

  Graph graph;
  graph.set_training(false);
  Values inputs;
  for (const onnx::Declaration& input : net.inputs())
    inputs.add(input.name, graph.input(input.name, tensor(input.name).spec()));
  const Values outputs = net.trace(graph, inputs);
  std::vector<Value> wanted;
  for (const NamedValue& output : outputs) wanted.push_back(output.value);
  Program program = compile(graph, wanted, std::make_shared<Variables>(device, 1));
  const std::vector<std::string> held = program.values();
  for (const NamedValue& input : inputs) {  // a shape alone needs no values
    if (std::ranges::find(held, input.name) != held.end()) program.write(input.name, tensor(input.name));
  }
  program.run();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string difference =
        difference_of(program.read(wanted[i]), onnx::read_tensor(numbered(folder, "output", i)));
    if (!difference.empty()) return fmt::format("output {}: {}", net.outputs()[i].name, difference);
  }
  return {};
}

}  // namespace

std::vector<BackendCase> backend_cases() {
  std::vector<BackendCase> cases;
  const fs::path data = onnx_data();
  if (data.empty()) return cases;
  for (const char* const group : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    for (const auto& entry : fs::directory_iterator(data / group)) {
      const fs::path model = entry.path() / "model.onnx";
      if (!fs::exists(model) || !is_in_scope(onnx::read_model(model))) continue;
      cases.push_back({entry.path().filename().string(), entry.path()});
    }
  }
  std::ranges::sort(cases, {}, &BackendCase::name);
  std::set<std::string> seen;
  for (BackendCase& one : cases) {
    for (const auto& node : onnx::read_model(one.folder / "model.onnx").graph.nodes) {
      one.is_first = seen.insert(node.op_type).second || one.is_first;
    }
  }
  return cases;
}

std::string fault_of(const BackendCase& one, const DevicePtr& device) {
  try {
    for (const auto& entry : fs::directory_iterator(one.folder)) {
      if (!entry.is_directory()) continue;
      const std::string fault = fault_of_set(one.folder / "model.onnx", entry.path(), device);
      if (!fault.empty()) return fault;
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

std::map<std::string, std::string> listed_cases(const std::string& file) {
  std::ifstream stream(folder_of_tests() / "onnx" / file);
  if (!stream) throw IoError("cannot open " + file);
  std::map<std::string, std::string> listed;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) throw FormatError(file + ": a line without a reason: " + line);
    listed[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return listed;
}

}  // namespace concord::test
