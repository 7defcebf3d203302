// Pointwise on the CPU: operands in place, sizes around a tile, long sums.
#include "concord/ops/pointwise.hpp"

#include "../../cpu/tile.hpp"
#include "concord/ops/reduce.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

// The outputs of a two-output expression whose results may lie over its two inputs.
std::vector<std::vector<float>> run_in_place(const Expression& expression, bool in_place, bool crossed) {
  const Shape shape{5000};
  const ops::Pointwise op(expression, {DType::f32, DType::f32}, "test");
  const std::vector<Tensor> values{normal_tensor(shape, 1), normal_tensor(shape, 2)};
  KernelRequest request{
      &op, {values[0].spec(), values[1].spec()}, {nullptr, nullptr}, {values[0].spec(), values[0].spec()}};
  const PreparedKernel prepared = cpu_device()->prepare(request);
  std::vector<BufferPtr> buffers;
  for (std::size_t i = 0; i < 4; ++i) {
    buffers.push_back(cpu_device()->allocate(values[0].spec().bytes()));
    if (i < 2) cpu_device()->write(*buffers[i], 0, values[i].bytes());
  }
  const BufferPtr workspace = cpu_device()->allocate(prepared.kernel->workspace());
  const std::vector<Operand> inputs{{buffers[0].get(), 0}, {buffers[1].get(), 0}};
  const std::size_t first = in_place ? (crossed ? 1 : 0) : 2, second = in_place ? 1 - first : 3;
  const std::vector<Operand> outputs{{buffers[first].get(), 0}, {buffers[second].get(), 0}};
  prepared.kernel->bind(inputs, outputs, {workspace.get(), 0})->enqueue();
  std::vector<std::vector<float>> results(2, std::vector<float>(5000));
  cpu_device()->read(*buffers[first], 0, std::as_writable_bytes(std::span(results[0])));
  cpu_device()->read(*buffers[second], 0, std::as_writable_bytes(std::span(results[1])));
  return results;
}

}  // namespace

TEST_CASE("outputs may lie over inputs, in any order", "[cpu]") {
  const Scalar a = scalar::input(0), b = scalar::input(1);
  const Scalar step = 0.9F * a + b;
  const std::vector<Expression> expressions{Expression({step, b - 0.1F * step}, 2), Expression({a + b, a}, 2),
                                            Expression({b, a}, 2), Expression({b - step, step * a}, 2)};
  for (const Expression& expression : expressions) {
    CAPTURE(expression.str());
    const auto expected = run_in_place(expression, false, false);
    CHECK(run_in_place(expression, true, false) == expected);
    CHECK(run_in_place(expression, true, true) == expected);
  }
}

TEST_CASE("rows shorter than, equal to and longer than a tile", "[cpu]") {
  const Scalar a = scalar::input(0), b = scalar::input(1), c = scalar::input(2);
  const Expression expression({a * b + c + scalar::coordinate(0)}, 3);
  for (const std::int64_t row : {std::int64_t{3}, cpu::kTile - 1, cpu::kTile, cpu::kTile + 1, 2 * cpu::kTile + 7}) {
    CAPTURE(row);
    const Tensor x = normal_tensor(Shape{11, row}, 1), y = normal_tensor(Shape{row}, 2),
                 z = normal_tensor(Shape{11, 1}, 3);
    const Tensor got = run_kernel(ops::Pointwise(expression, {DType::f32}, "test"), {x, y, z}, false).outputs[0];
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const auto at = static_cast<std::size_t>(i), column = static_cast<std::size_t>(i % row);
      const float inputs[3] = {x.values<float>()[at], y.values<float>()[column],
                               z.values<float>()[static_cast<std::size_t>(i / row)]};
      const std::int64_t coordinates[2] = {i % row, i / row};
      wrong += got.values<float>()[at] == expression.evaluate(0, inputs, coordinates) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("integers are rounded toward zero and limited to their range", "[cpu]") {
  const Tensor x = Tensor::of<float>(Shape{5}, std::vector<float>{-3.7F, 2.9F, 300.0F, 3e9F, -3e9F});
  const Expression expression({scalar::input(0), scalar::input(0)}, 1);
  const KernelRun run = run_kernel(ops::Pointwise(expression, {DType::i32, DType::u8}, "cast"), {x}, false);
  const auto words = run.outputs[0].values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(words.begin(), words.end()) ==
        std::vector<std::int32_t>{-3, 2, 300, 2147483647, -2147483647 - 1});
  const auto bytes = run.outputs[1].values<std::uint8_t>();
  CHECK(std::vector<std::uint8_t>(bytes.begin(), bytes.end()) == std::vector<std::uint8_t>{0, 2, 255, 255, 0});
}

TEST_CASE("a long sum keeps its digits", "[cpu]") {
  // Adding ones one by one in float would stop at 2^24.
  Tensor ones(DType::f32, Shape{20, 1 << 20});
  for (float& value : ones.values<float>()) value = 1;
  const Tensor total = run_kernel(ops::Reduce(ops::ReduceKind::sum, {0, 1}), {ones}, false).outputs[0];
  CHECK(total.values<float>()[0] == 20.0F * (1 << 20));
}

}  // namespace concord::test
