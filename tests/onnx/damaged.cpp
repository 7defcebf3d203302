// Damaged models of every operator: a file with changed bytes is traced or refused with an Error, and nothing else.
#include <fstream>
#include <optional>
#include <random>

#include "concord/core/platform.hpp"
#include "onnx/model_builder.hpp"
#include "onnx/onnx_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The declared inputs with 2 for each free size; nothing if they are large.
std::optional<Values> inputs_of(const onnx::Network& network, Graph& graph) {
  constexpr std::int64_t kMost = 1'000'000;
  Values inputs;
  for (const onnx::Declaration& input : network.inputs()) {
    std::vector<std::int64_t> dims;
    std::int64_t elements = 1;
    for (const auto& one : input.shape.value_or(std::vector<onnx::Declaration::Size>{})) {
      dims.push_back(one.size < 0 ? 2 : one.size);
      elements *= std::max<std::int64_t>(dims.back(), 1);
      if (elements > kMost) return std::nullopt;
    }
    const std::string name = "input " + std::to_string(inputs.size());
    inputs.add(input.name, graph.input(name, {onnx::dtype_of(input.type), Shape(std::move(dims))}));
  }
  return inputs;
}

/// Whether the file is refused. Throws what is no Error.
bool is_refused(const std::filesystem::path& file) {
  try {
    onnx::Network network = onnx::load(file);
    Graph graph;
    if (const auto inputs = inputs_of(network, graph)) static_cast<void>(network.trace(graph, *inputs));
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// The refusal of a model with this node, whose result nobody reads.
template <class ErrorClass>
std::string refusal_of(const onnx::NodeDef& unused, const std::vector<onnx::TensorProto>& numbers,
                       const Shape& shape = {2, 3}) {
  onnx::Model model = empty_model();
  model.graph.initializers = numbers;
  model.graph.nodes = {unused, node("Relu", {"x"}, {"y"})};
  model.graph.inputs = {declared("x", onnx::ElementType::f32, std::vector<std::int64_t>(shape.rank(), -1))};
  model.graph.outputs = {onnx::ValueInfo{"y"}};
  const ModelFile file(model);
  onnx::Network network = onnx::load(file.path());
  Graph graph;
  const Value x = graph.input("x", {DType::f32, shape});
  return message_of<ErrorClass>([&] { static_cast<void>(network.trace(graph, Values{{"x", x}})); });
}

onnx::NodeDef sparse_node(std::vector<std::int64_t> dims, std::size_t values, onnx::TensorProto indices) {
  onnx::Attribute made{.name = "sparse_value", .type = onnx::AttributeType::sparse_tensor};
  made.sparse_tensors.push_back({float_proto("", {static_cast<std::int64_t>(values)}, std::vector<float>(values, 1)),
                                 std::move(indices), std::move(dims)});
  return node("Constant", {}, {"c"}, {made});
}

}  // namespace

TEST_CASE("a damaged model of any operator is traced or refused, nothing else", "[onnx]") {
  constexpr int kTries = 3;
  constexpr std::size_t kLargest = 20'000;
  const TemporaryFolder folder;
  const std::filesystem::path damaged = folder / "damaged.onnx";
  std::mt19937 random(1);
  int models = 0, refused = 0;
  for (const std::filesystem::path& file : onnx_files()) {
    const std::string whole = read_file(file);
    if (whole.size() > kLargest) continue;
    for (int i = 0; i < kTries; ++i) {
      std::string bytes = whole;
      const std::size_t at = random() % bytes.size();
      bytes[at] =
          static_cast<char>(random() % 3 == 0 ? random() : static_cast<unsigned char>(bytes[at]) ^ 1U << random() % 8);
      write_file(damaged, bytes);
      INFO(file << ", byte " << at);
      ++models;
      CHECK_NOTHROW(refused += is_refused(damaged) ? 1 : 0);
    }
  }
  if (models == 0) WARN("skipped: there are no ONNX files here");
  CHECK(2 * refused >= models);
}

TEST_CASE("a node without an output, or with a size that no tensor has, is refused", "[onnx]") {
  CHECK_THAT(refusal_of<FormatError>(node("Split", {"x"}, {}), {}), contains("has no output"));
  CHECK_THAT(
      refusal_of<ShapeError>(node("Split", {"x", "s"}, {"a", "b"}), {integer_proto("s", {2}, {INT64_MAX, INT64_MAX})}),
      contains("do not fill 2"));
  const Shape images{1, 4, 2, 2};
  for (const char* const op : {"DepthToSpace", "SpaceToDepth"}) {
    for (const std::int64_t block : {std::int64_t{1} << 32U, std::int64_t{0}}) {
      CHECK_THAT(refusal_of<ShapeError>(node(op, {"x"}, {"d"}, {attribute("blocksize", block)}), {}, images),
                 contains("blocks of"));
    }
  }
  constexpr std::int64_t kHuge = std::int64_t{1} << 40U;
  const onnx::TensorProto one = integer_proto("c", {1}, {5}), two = integer_proto("c", {2, 1}, {5, 6});
  CHECK_THAT(refusal_of<ShapeError>(node("Expand", {"c", "s"}, {"e"}), {one, integer_proto("s", {1}, {-1})}),
             contains("negative"));
  CHECK_THAT(refusal_of<ShapeError>(node("Expand", {"c", "s"}, {"e"}), {one, integer_proto("s", {2}, {kHuge, kHuge})}),
             contains("too many elements"));
  CHECK_THAT(refusal_of<ShapeError>(node("Tile", {"c", "s"}, {"e"}), {two, integer_proto("s", {2}, {INT64_MAX, 1})}),
             contains("repeats"));
}

TEST_CASE("a sparse constant that does not fit its indices or its shape is refused", "[onnx]") {
  CHECK_THAT(refusal_of<FormatError>(sparse_node({1000}, 200'000, integer_proto("", {1}, {0})), {}),
             contains("has indices [1]"));
  CHECK_THAT(refusal_of<FormatError>(sparse_node({2, 2}, 2, integer_proto("", {2, 1}, {0, 1})), {}),
             contains("has indices [2, 1]"));
  CHECK_THAT(refusal_of<FormatError>(sparse_node({2, 2}, 1, integer_proto("", {1, 2}, {-1, 2})), {}),
             contains("outside its shape"));
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 40U}) {
    CHECK_THAT(refusal_of<ShapeError>(sparse_node({size}, 1, integer_proto("", {1}, {0})), {}),
               contains("negative size or more than"));
  }
}

TEST_CASE("boxes and scores of different batches are refused", "[onnx]") {
  const std::vector<onnx::TensorProto> numbers{float_proto("b", {1, 1, 4}, {0, 0, 1, 1}),
                                               float_proto("s", {9, 1, 1}, std::vector<float>(9, 0.5F)),
                                               integer_proto("m", {}, {4})};
  CHECK_THAT(refusal_of<ShapeError>(node("NonMaxSuppression", {"b", "s", "m"}, {"i"}), numbers),
             contains("boxes must be"));
}
