// choose_layouts(): reshapes, transpositions and slices that a layout makes a view, without a kernel.
#include <algorithm>

#include "compile/layout_test.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::test {
namespace {

/// A layout that any view keeps, and that the transposition {1, 0}, and a slice from row 1 on, make `turned`.
class ViewableLayout final : public LayoutDescription {
 public:
  explicit ViewableLayout(Layout turned) : turned_(std::move(turned)) {}
  [[nodiscard]] std::size_t bytes() const override { return 4096; }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override { return other.str() == str(); }
  [[nodiscard]] std::string str() const override { return "viewable"; }
  [[nodiscard]] Layout viewed_as(const TensorSpec&) const override { return std::make_shared<ViewableLayout>(turned_); }
  [[nodiscard]] Layout transposed(std::span<const std::size_t> order, const TensorSpec&) const override {
    return order[0] == 1 ? turned_ : nullptr;
  }
  [[nodiscard]] Layout sliced(std::span<const std::int64_t> start, const TensorSpec&) const override {
    return start[0] == 1 ? turned_ : nullptr;
  }

 private:
  Layout turned_;
};

}  // namespace

TEST_CASE("a view keeps the layout of its operand where that says so", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value y = relu(named(reshape(named(softmax(x), "s"), Shape{2, 8}), "view"));
  FakeDevice device;
  device.rules["softmax"] = {nullptr, std::make_shared<ViewableLayout>(nullptr)};
  device.rules["relu"] = kAsOffered;
  const Lowered program = laid_out(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"softmax", "reshape", "relu"});
  CHECK(name_of(program.value(id_of(program, "view")).layout) == "viewable");
  CHECK(device.reorders.empty());
  check_layouts(program);
}

TEST_CASE("a transposition is a view where layouts say so, and a kernel where values are kept", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const std::vector outputs{relu(named(transpose(named(softmax(x), "s"), {1, 0}), "turned"))};
  FakeDevice device;
  device.rules["softmax"] = {nullptr, std::make_shared<ViewableLayout>(named_layout("turned"))};
  device.rules["relu"] = kAsOffered;
  const Lowered program = laid_out(graph, outputs, device);
  CHECK(operators_of(program) == Names{"softmax", "transpose", "relu"});
  CHECK(program.nodes[1].is_view);
  CHECK(name_of(program.value(id_of(program, "turned")).layout) == "turned");
  CHECK(program.root(id_of(program, "turned")) == id_of(program, "s"));
  CHECK(device.reorders.empty());
  check_layouts(program);

  Lowered kept = lower(graph, outputs, true);
  choose_layouts(kept, device, Precision::fp32, true);
  CHECK(operators_of(kept) == Names{"softmax", "reorder", "transpose", "relu"});
  check_layouts(kept);
}

TEST_CASE("a slice is a view where layouts say so, and a kernel with steps or where values are kept", "[compile]") {
  Graph graph;
  const Value x = softmax(graph.input("x", {DType::f32, {4, 4}}));
  const std::vector outputs{relu(named(slice(x, 0, 1, 3), "part")), relu(named(slice(x, 0, 1, 4, 2), "stepped")),
                            relu(named(slice(x, 0, 0, 2), "moved"))};
  FakeDevice device;
  device.rules["softmax"] = {nullptr, std::make_shared<ViewableLayout>(named_layout("columns"))};
  const Lowered program = laid_out(graph, outputs, device);
  const auto is_view = [&](const char* name) {
    const ValueId id = id_of(program, name);
    const auto makes_it = [&](const LoweredNode& node) { return node.outputs[0] == id; };
    return std::ranges::find_if(program.nodes, makes_it)->is_view;
  };
  CHECK(is_view("part"));
  CHECK(name_of(program.value(id_of(program, "part")).layout) == "columns");
  CHECK_FALSE(is_view("stepped"));
  CHECK_FALSE(is_view("moved"));
  Lowered kept = lower(graph, outputs, true);
  choose_layouts(kept, device, Precision::fp32, true);
  CHECK(std::ranges::none_of(kept.nodes, [](const LoweredNode& node) { return node.is_view; }));
}

}  // namespace concord::test
