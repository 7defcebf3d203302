// Kernels get the threads that they were made for, whatever the program does with OpenMP: some of oneDNN's wait for
// each of them, and would wait for ever.
#include <omp.h>

#include <optional>

#include "../../cpu/full_team.hpp"
#include "cli/process.hpp"
#include "concord/compile/program.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/pointwise.hpp"
#include "core/thrown.hpp"
#include "host_threads.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

/// OpenMP may choose fewer threads than a region asks for: as many as processors are free.
class Dynamic {
 public:
  Dynamic() { omp_set_dynamic(1); }
  Dynamic(const Dynamic&) = delete;
  Dynamic& operator=(const Dynamic&) = delete;
  ~Dynamic() { omp_set_dynamic(before_); }

 private:
  int before_ = omp_get_dynamic();
};

/// The weights' gradient of LeNet's second convolution, whose threads wait for each other.
Tensor weights_gradient() {
  const ops::ConvBackwardWeights gradient(ops::ConvOptions{}, Shape{50, 20, 5, 5});
  const Tensor src = normal_tensor(Shape{16, 20, 12, 12}, 1), diff_dst = normal_tensor(Shape{16, 50, 8, 8}, 2);
  return run_kernel(gradient, {src, diff_dst}, true).outputs[0];
}

/// What `work` makes in a parallel region of two threads, as their first.
template <class Work>
Tensor in_region(const Work& work) {
  std::optional<Tensor> made;
  std::string message;
  int threads = 0;
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    threads = omp_get_num_threads();
    message = thrown([&] { made = work(); });
  }
  CHECK(threads == 2);
  INFO(message);
  REQUIRE(made);
  return *std::move(made);
}

}  // namespace

TEST_CASE("kernels have all their threads where OpenMP may choose fewer", "[cpu]") {
  const HostThreads of_host(4);
  const Tensor expected = weights_gradient();
  const Dynamic dynamic;
  for (const int of_openmp : {4, 3}) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(of_openmp);
    CHECK(std::ranges::equal(weights_gradient().bytes(), expected.bytes()));
    CHECK(omp_get_dynamic() != 0);  // the program's settings are as they were
    CHECK(omp_get_max_threads() == of_openmp);
    omp_set_num_threads(before);
  }
}

TEST_CASE("kernels have all their threads in a parallel region of the program", "[cpu]") {
  const HostThreads of_host(4);
  const Tensor expected = weights_gradient();
  CHECK(std::ranges::equal(in_region(weights_gradient).bytes(), expected.bytes()));

  Graph graph;
  const Value x = graph.input("x", {DType::f32, {16, 20, 12, 12}}), w = graph.input("w", {DType::f32, {50, 20, 5, 5}});
  const Value y = sum(square(conv2d(x, w)));
  const Value slope = gradient(y, std::vector{w})[0];
  Program program = compile(graph, std::vector{slope}, std::make_shared<Variables>(cpu_device(), 1));
  program.write("x", normal_tensor(x.shape(), 1));
  program.write("w", normal_tensor(w.shape(), 2));
  const auto results = [&] {
    program.run();
    return program.read(slope);
  };
  const Tensor outside = results();
  for (int run = 0; run < 3; ++run) CHECK(std::ranges::equal(in_region(results).bytes(), outside.bytes()));
  CHECK(std::ranges::equal(results().bytes(), outside.bytes()));
}

TEST_CASE("what a kernel throws comes out of a parallel region's thread", "[cpu]") {
  const auto fail = [] { throw ArgumentError("this kernel"); };
  std::string message;
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) message = thrown([&] { cpu::with_full_team(4, fail); });
  CHECK(message == "ArgumentError: this kernel");
  CHECK(thrown([&] { cpu::with_full_team(4, fail); }) == "ArgumentError: this kernel");
}

TEST_CASE("a training ends where OpenMP starts fewer threads than Concord may take", "[cpu]") {
  if (!command_is_there()) return;
  for (const auto& [name, value] : {std::pair{"OMP_THREAD_LIMIT", "2"},
                                    {"OMP_THREAD_LIMIT", "1"},
                                    {"OMP_DYNAMIC", "true"},
                                    {"OMP_MAX_ACTIVE_LEVELS", "0"}}) {
    INFO(name << '=' << value);
    const Ended ended = run_command({"bench", "lenet", "--batch", "16", "--device", "cpu", "--first-step", "--json"},
                                    {{"CONCORD_NUM_THREADS", "4"}, {name, value}});
    CHECK(ended.code == 0);
  }
}

}  // namespace concord::test
