// Damaged models of every operator: a file with changed bytes is traced or refused with an Error, and nothing else.
#include <fstream>
#include <optional>
#include <random>

#include "concord/core/platform.hpp"
#include "files.hpp"
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
