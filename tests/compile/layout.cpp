// choose_layouts(): layouts pass from producer to consumer, a reorder stands only where one is needed, and everything
// that others read or write is row-major.
#include <algorithm>
#include <random>
#include <set>

#include "compile/layout_test.hpp"
#include "concord/compile/plan.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::test {
namespace {

/// Takes and gives this layout only; every mention makes an object of its own.
LayoutRule all(const std::string& name) { return {named_layout(name), named_layout(name)}; }

Names offered(const KernelRequest& request) {
  Names names;
  for (const Layout& layout : request.input_layouts) names.push_back(name_of(layout));
  return names;
}

}  // namespace

TEST_CASE("where every kernel is row-major, every node gets its kernel and nothing is added", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value y = relu(matmul(x, variable(graph, "w")));
  FakeDevice device;
  const Lowered program = laid_out(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"matmul", "relu"});
  CHECK(device.reorders.empty());
  check_layouts(program);
  CHECK(program.nodes[1].kernel->name() == "fake relu");
  REQUIRE(device.requests.size() == 2);
  CHECK(device.requests[0].op->name() == "matmul");
  CHECK(device.requests[0].inputs == std::vector<TensorSpec>{kMatrix, kMatrix});
  CHECK(device.requests[0].outputs == std::vector<TensorSpec>{kMatrix});
}

TEST_CASE("layouts pass from producer to consumer", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value first = named(softmax(x), "first");
  const Value middle = named(relu(first), "middle");
  const Value last = named(softmax(middle), "last");
  FakeDevice device;
  device.rules["softmax"] = all("blocked");
  device.rules["relu"] = kAsOffered;
  const Lowered program = laid_out(graph, std::vector{last}, device);
  CHECK(operators_of(program) == Names{"reorder", "softmax", "relu", "softmax"});
  REQUIRE(device.requests.size() == 3);
  CHECK(offered(device.requests[0]) == Names{"row-major"});
  CHECK(offered(device.requests[1]) == Names{"blocked"});
  CHECK(offered(device.requests[2]) == Names{"blocked"});
  REQUIRE(device.reorders.size() == 1);
  CHECK(device.reorders[0].spec == kMatrix);
  CHECK(name_of(device.reorders[0].from) == "row-major");
  CHECK(name_of(device.reorders[0].to) == "blocked");
  CHECK(program.nodes[0].op == nullptr);
  CHECK(program.nodes[0].name == "reorder/x");
  CHECK(names_of(program, program.nodes[1].inputs) == Names{"x in blocked"});
  CHECK(program.source(program.nodes[1].inputs[0]) == id_of(program, "x"));
  CHECK(program.source(id_of(program, "last")) == id_of(program, "last"));
  CHECK(name_of(program.value(id_of(program, "last")).layout) == "blocked");  // a reader brings it back
  CHECK(program.bytes(id_of(program, "last")) == 4096);
  CHECK(program.bytes(id_of(program, "x")) == 64);
  check_layouts(program);
}

TEST_CASE("a kernel that wants row-major values gets them from one that does not leave them so", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value y = relu(named(softmax(x), "s"));
  FakeDevice device;
  device.rules["softmax"] = {nullptr, named_layout("blocked")};
  const Lowered program = laid_out(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"softmax", "reorder", "relu"});
  CHECK(names_of(program, program.nodes[2].inputs) == Names{"s in row-major"});
  check_layouts(program);
}

TEST_CASE("consumers that want one layout share one reorder, others have their own", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const std::vector outputs{softmax(x), matmul(x, x), relu(x), softmax(x)};
  FakeDevice device;
  device.rules["softmax"] = all("blocked");
  device.rules["matmul"] = all("striped");
  const Lowered program = laid_out(graph, outputs, device);
  CHECK(operators_of(program) == Names{"reorder", "softmax", "reorder", "matmul", "relu", "softmax"});
  CHECK(names_of(program, program.nodes[1].inputs) == Names{"x in blocked"});
  CHECK(names_of(program, program.nodes[3].inputs) == Names{"x in striped", "x in striped"});
  CHECK(names_of(program, program.nodes[4].inputs) == Names{"x"});
  CHECK(names_of(program, program.nodes[5].inputs) == Names{"x in blocked"});
  check_layouts(program);
}

TEST_CASE("variables, inputs and assigned values are row-major, and ready as early as they can be", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value b = variable(graph, "b");
  const Value product = named(matmul(x, w), "product");
  graph.assign(w, product);
  graph.assign(b, named(relu(x), "plain"));
  FakeDevice device;
  device.rules["matmul"] = all("blocked");
  const Lowered program = laid_out(graph, std::vector{product}, device);
  CHECK(operators_of(program) == Names{"reorder", "reorder", "matmul", "reorder", "relu"});
  check_layouts(program);
  REQUIRE(program.assignments.size() == 2);
  CHECK(program.value(program.assignments[0].variable).name == "w");
  CHECK(program.value(program.assignments[0].value).name == "product in row-major");
  CHECK(program.value(program.assignments[1].value).name == "plain");
  const MemoryPlan plan = plan_memory(program, false);
  CHECK(plan.copies.empty());
  for (const auto& [assigned, value] : program.assignments) {
    CHECK(plan.storage[static_cast<std::size_t>(value)].variable == assigned);
  }
}

TEST_CASE("an assigned value that a kernel has read row-major is not reordered again", "[compile]") {
  Graph graph;
  const Value w = variable(graph, "w");
  const Value product = named(matmul(w, w), "product");
  const Value y = relu(product);
  graph.assign(w, product);
  FakeDevice device;
  device.rules["matmul"] = {nullptr, named_layout("blocked")};
  const Lowered program = laid_out(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"matmul", "reorder", "relu"});
  CHECK(program.value(program.assignments[0].value).name == "product in row-major");
}

TEST_CASE("a reshape sees row-major bytes, and so does what comes after", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value product = named(matmul(x, x), "product");
  const Value flat = named(reshape(product, {16}), "flat");
  const Value y = relu(flat);
  const Value view = reshape(x, {2, 8});
  FakeDevice device;
  device.rules["matmul"] = {nullptr, named_layout("blocked")};
  device.rules["relu"] = kAsOffered;
  const Lowered program = laid_out(graph, std::vector{y, view}, device);
  CHECK(operators_of(program) == Names{"matmul", "reorder", "reshape", "relu", "reshape"});
  check_layouts(program);
  CHECK(program.value(program.root(id_of(program, "flat"))).name == "product in row-major");
  CHECK(offered(device.requests[1]) == Names{"row-major"});
  CHECK(device.requests.size() == 2);  // a reshape has no kernel
}

TEST_CASE("what a device cannot run is named with its node", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  Lowered program = lower(graph, std::vector{named(softmax(relu(x)), "the_softmax")}, false);
  FakeDevice device;
  device.without_kernel = "softmax";
  CHECK_THROWS_WITH(choose_layouts(program, device),
                    contains("fake device") && contains("the_softmax") && contains("no kernel for operator softmax"));
}

// Graphs of random operators whose kernels want random layouts.
TEST_CASE("every kernel gets its layouts with as few reorders as there are layouts of a value", "[compile]") {
  std::mt19937 random(2);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const auto any_layout = [&]() -> Layout {
    const std::size_t i = below(3);
    return i == 0 ? nullptr : named_layout(i == 1 ? "blocked" : "striped");
  };
  for (int round = 0; round < 100; ++round) {
    INFO("graph " << round);
    Graph graph;
    const Value w = variable(graph, "w");
    std::vector<Value> values{graph.input("x", kMatrix), w};
    const auto any = [&] { return values[below(values.size())]; };
    for (int i = 0; i < 15; ++i) {
      switch (below(5)) {
        case 0: values.push_back(relu(any())); break;
        case 1: values.push_back(any() + any()); break;
        case 2: values.push_back(matmul(any(), any())); break;
        case 3: values.push_back(softmax(any())); break;
        default: values.push_back(reshape(any(), kMatrix.shape)); break;
      }
    }
    graph.assign(w, any());
    FakeDevice device;
    for (const char* op : {"relu", "add", "matmul", "softmax", "transpose"}) {
      device.rules[op] = {any_layout(), any_layout(), below(3) == 0};
    }
    const std::vector outputs{values.back(), any()};
    const Lowered program = laid_out(graph, outputs, device);
    check_layouts(program);
    const Lowered before = lower(graph, outputs, false);
    CHECK(program.nodes.size() == before.nodes.size() + device.reorders.size());
    std::set<std::pair<ValueId, std::string>> made;
    for (const LoweredNode& node : program.nodes) {
      if (node.op) continue;
      const LoweredValue& source = program.value(node.inputs[0]);
      const LoweredValue& copy = program.value(node.outputs[0]);
      INFO(node.name);
      CHECK_FALSE(same_layout(source.layout, copy.layout));
      CHECK(source.spec == copy.spec);
      CHECK(made.emplace(node.inputs[0], name_of(copy.layout)).second);
    }
    const auto given = std::map<std::string, float>{{"x", 0.5F}, {"w", 2}};
    const auto expected = evaluate(before, given), values_after = evaluate(program, given);
    for (const auto& [name, value] : expected) CHECK(values_after.at(name) == value);
  }
}

TEST_CASE("a device is asked for no kernel and no epilogue of results without elements", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {0, 4}}), w = graph.input("w", kMatrix);
  const std::vector outputs{relu(matmul(x, w)), exp(w)};
  FakeDevice device;
  device.takes_epilogue = [](const Operator&, const Expression&) { return true; };
  Lowered program = lower(graph, outputs, false);
  fuse(program, device);
  choose_layouts(program, device);
  CHECK(device.questions.empty());
  REQUIRE(device.requests.size() == 1);
  CHECK(device.requests[0].op->name() == "exp");
  CHECK(operators_of(program) == Names{"matmul", "relu", "exp"});
  for (const LoweredNode& node : program.nodes) CHECK((node.kernel == nullptr) == program.is_empty(node));
}

TEST_CASE("row-major lies between two layouts that the device does not exchange", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value y = matmul(named(softmax(x), "s"), x);
  FakeDevice device;
  device.rules["softmax"] = {nullptr, named_layout("blocked")};
  device.rules["matmul"] = all("striped");
  device.only_row_major_reorders = true;
  const Lowered program = laid_out(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"softmax", "reorder", "reorder", "reorder", "matmul"});
  CHECK(program.source(program.nodes.back().inputs[0]) == id_of(program, "s"));
  check_layouts(program);
}

}  // namespace concord::test
