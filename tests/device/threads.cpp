// Threads: one object used from several at once says so, and how many threads compute is the user's to say.
#include "concord/core/threads.hpp"

#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "concord/core/parallel.hpp"
#include "files.hpp"
#include "setting.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// What `work` throws in another thread; empty without.
std::string in_other_thread(const std::function<void()>& work) {
  std::string message;
  std::thread([&] {
    try {
      work();
    } catch (const ArgumentError& error) {
      message = error.what();
    } catch (const std::exception& error) {
      message = std::string("another exception: ") + error.what();
    }
  }).join();
  return message;
}

struct AtEpoch : Callback {
  std::function<void()> work;
  explicit AtEpoch(std::function<void()> wanted) : work(std::move(wanted)) {}
  void on_epoch(const EpochReport& /*report*/) override { work(); }
};

class Threads {
 public:
  explicit Threads(int threads) : before_(num_threads()) { set_num_threads(threads); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace

TEST_CASE("a trainer and its device tell a second thread that they are in use", "[device][threads]") {
  const Dataset data = data::synthetic(Shape{1, 4, 4}, 3, 12, 0);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{nn::Sequential{nn::Flatten{}, nn::Linear{16, 3}}, loss::cross_entropy, optim::Sgd{.lr = 0.1},
                    device};
    std::string evaluated, saved, again;
    const TemporaryFolder folder;
    const auto callback = std::make_shared<AtEpoch>([&] {
      evaluated = in_other_thread([&] { static_cast<void>(trainer.evaluate(data)); });
      saved = in_other_thread([&] { trainer.save(folder / "a.safetensors"); });
      trainer.save(folder / "b.safetensors");  // from within is allowed
    });
    trainer.fit(data, {.batch = 4, .callbacks = {callback}});
    CHECK_THAT(evaluated, contains("another thread is using a Trainer"));
    CHECK_THAT(saved, contains("another thread is using a Trainer"));
    CHECK(std::filesystem::exists(folder / "b.safetensors"));
    CHECK(in_other_thread([&] { static_cast<void>(trainer.evaluate(data)); }).empty());  // one after the other

    const Device::Use use(*device);
    CHECK_THAT(in_other_thread([&] { static_cast<void>(device->allocate(16)); }),
               contains("another thread is using the device " + device->info().id + ";"));
    CHECK_THAT(in_other_thread([&] { static_cast<void>(trainer.evaluate(data)); }),
               contains("another thread is using"));
    static_cast<void>(device->allocate(16));
  }
}

TEST_CASE("four threads on one program, one device or one network end in errors, not in a crash", "[device][threads]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value y = sum(exp(graph.input("x", {DType::f32, Shape{64, 64}})));
    Program program = compile(graph, y, std::make_shared<Variables>(device, 1));
    program.write("x", Tensor(DType::f32, Shape{64, 64}));
    nn::Sequential network{nn::Linear{4, 4}, nn::ReLU{}, nn::Linear{4, 2}};
    const std::string name = y.name();
    std::atomic<int> done = 0, refused = 0, wrong = 0;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < 100; ++i) {
            try {
              program.run();
              const Tensor result = program.read(name);
              if (result.values<float>()[0] != 4096) ++wrong;
              static_cast<void>(device->allocate(64));
              Graph own;
              network(own.input("x", {DType::f32, Shape{2, 4}}));
              ++done;
            } catch (const ArgumentError& error) {
              if (std::string(error.what()).find("another thread is using") == std::string::npos) ++wrong;
              ++refused;
            } catch (...) {
              ++wrong;
            }
          }
        });
      }
    }
    CHECK(wrong == 0);
    CHECK(done + refused == 400);
    CHECK(done > 0);
    program.run();
    CHECK(program.read(y).values<float>()[0] == 4096);
  }
}

TEST_CASE("the number of threads is the program's to say, then the environment's", "[device][threads]") {
  CHECK(num_threads() >= 1);
  CHECK_THROWS_AS(set_num_threads(0), ArgumentError);
  CHECK_THROWS_AS(set_num_threads(-2), ArgumentError);
  CHECK_THROWS_AS(set_num_threads(1 << 20), ArgumentError);
  for (const DevicePtr& device : devices()) {
    if (device->info().id != "cpu") continue;
    std::vector<float> results;
    for (const int threads : {1, 3, 2}) {
      const Threads set(threads);
      CHECK(num_threads() == threads);
      const DevicePtr own = Device::open("cpu");
      CHECK(own->info().compute_units == static_cast<std::uint32_t>(threads));
      Graph graph;
      const Value x = graph.input("x", {DType::f32, Shape{300, 300}});
      const Value y = sum(matmul(x, x) + sum(exp(x), {1}, true));
      Program program = compile(graph, y, std::make_shared<Variables>(own, 1));
      program.write("x", Tensor::of(Shape{300, 300}, std::vector<float>(90000, 0.01F)));
      program.run();
      results.push_back(program.read(y).values<float>()[0]);
    }
    CHECK(results[1] == Approx(results[0]).epsilon(1e-5));
    CHECK(results[2] == Approx(results[0]).epsilon(1e-5));
  }
}

TEST_CASE("a small kernel is the calling thread's alone", "[device][threads]") {
  for (const DevicePtr& device : devices()) {
    if (device->info().id != "cpu") continue;
    const Threads set(4);
    const DevicePtr own = Device::open("cpu");
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{16, 16}});
    const Value y = sum(matmul(relu(matmul(x, x)), x));
    Program program = compile(graph, y, std::make_shared<Variables>(own, 1));
    program.write("x", Tensor(DType::f32, Shape{16, 16}));
    program.run();
    // Another thread that helped would have been waited for: a voluntary switch, or time of its own.
    const auto other_time = [] {
      rusage all{}, self{};
      ::getrusage(RUSAGE_SELF, &all);
      ::getrusage(RUSAGE_THREAD, &self);
      const auto seconds = [](const rusage& u) {
        return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
      };
      return seconds(all) - seconds(self);
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // those that spin come to rest
    const double before = other_time();
    for (int i = 0; i < 2000; ++i) program.run();
    CHECK(other_time() - before < 2e-3);
  }
}

TEST_CASE("what a block of a parallel loop throws comes out of it", "[device][threads]") {
  const Threads set(4);
  for (const std::size_t bad : {std::size_t{0}, std::size_t{3}}) {
    CHECK_THROWS_WITH(for_blocks(8 * kBlockElements,
                                 [&](std::size_t i, std::size_t, std::size_t) {
                                   if (i == bad) throw std::runtime_error("this block");
                                 }),
                      "this block");
  }
}
