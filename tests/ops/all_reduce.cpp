// A device copies the operand of an all_reduce; who runs the program sums it over the ranks.
#include "concord/ops/all_reduce.hpp"

#include "concord/ops/gradient.hpp"
#include "concord/ops/reduce.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

/// Multiplies the operand by the number of ranks, as if all had the same.
std::function<void(const Operand&, std::size_t)> equal_ranks(Device& device, float ranks) {
  return [&device, ranks](const Operand& values, std::size_t count) {
    std::vector<float> numbers(count);
    device.read(*values.buffer, values.offset, std::as_writable_bytes(std::span(numbers)));
    for (float& number : numbers) number *= ranks;
    device.write(*values.buffer, values.offset, std::as_bytes(std::span(numbers)));
  };
}

}  // namespace

TEST_CASE("an all_reduce sums over the ranks, and so does its gradient", "[ops][compile]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {2, 3}});
    const Value scaled = x * 2.0F;  // it is read twice: what the ranks sum is a copy
    const Value y = all_reduce(scaled) + scaled;
    const Value gradient_x = gradient(sum(square(y)), {x})[0];
    Program program = compile(graph, {y, gradient_x}, std::make_shared<Variables>(device, 1));
    program.write("x", Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
    CHECK_THROWS_WITH(program.run(), contains("call Program::all_reduce_by first"));
    const auto sums = program.all_reduces();
    REQUIRE(sums.size() == 2);
    CHECK((sums[0].count == 6 && sums[1].count == 6));
    CHECK((sums[0].launch < sums[1].launch && sums[1].launch < program.launches()));
    program.all_reduce_by(equal_ranks(*device, 3));
    program.run();
    // y = 2x·3 + 2x. The other ranks' losses depend on x as this one's does: d/dy = 2y, through the sum 3·2y.
    CHECK(floats(program.read(y)) == std::vector<float>{8, 16, 24, 32, 40, 48});
    CHECK(floats(program.read(gradient_x)) == std::vector<float>{128, 256, 384, 512, 640, 768});
  }
}

TEST_CASE("all_gather puts the values of each rank into its row", "[ops][compile]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {2}});
    const Value all = all_gather(x, 1, 3);
    CHECK(all.shape() == Shape{3, 2});
    Program program = compile(graph, {all}, std::make_shared<Variables>(device, 1));
    program.write("x", Tensor::of<float>({2}, std::vector<float>{5, 7}));
    program.all_reduce_by(equal_ranks(*device, 1));
    program.run();
    CHECK(floats(program.read(all)) == std::vector<float>{0, 0, 5, 7, 0, 0});
    CHECK_THROWS_AS(all_gather(x, 3, 3), ArgumentError);
  }
}

TEST_CASE("an all_reduce of whole numbers is refused", "[ops]") {
  Graph graph;
  CHECK_THROWS_AS(all_reduce(graph.input("i", {DType::i32, {2}})), ShapeError);
}

}  // namespace concord::test
