// A process that is forked after it used a device: what the child inherits throws, ends and never hangs.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "concord/core/process_mark.hpp"
#include "concord/data/loader.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::chrono::seconds kPatience{30};

/// What the work in a forked child comes to: its text, or what it throws; "" when it does not end in time.
std::string in_child(const std::function<std::string()>& work, bool exits = false) {
  int ends[2];
  if (::pipe(ends) != 0) throw Error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      text = work();
    } catch (const DeviceError& error) {
      text = std::string("DeviceError: ") + error.what();
    } catch (const std::exception& error) {
      text = std::string("another exception: ") + error.what();
    }
    [[maybe_unused]] const auto written = ::write(ends[1], text.data(), text.size());
    ::close(ends[1]);
    if (exits) std::exit(0);  // with exit functions and destructors
    ::_exit(0);
  }
  ::close(ends[1]);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  pid_t ended = 0;
  while (ended == 0 && std::chrono::steady_clock::now() < deadline) {
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::string text(4096, '\0');
  if (ended == child) text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], text.data(), 4096), 0)));
  ::close(ends[0]);
  if (ended != child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return "";
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "ended by " + std::to_string(status);
}

/// The mean of 65536 numbers by all threads, and a product of matrices by oneDNN.
struct Work {
  explicit Work(const DevicePtr& device) : program(made(device)) {
    program.write("x", Tensor::of(Shape{256, 256}, std::vector<float>(256 * 256, 0.5F)));
  }
  [[nodiscard]] std::string result() {
    program.run();
    return std::to_string(program.read("y").values<float>()[0]);
  }
  static Program made(const DevicePtr& device) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{256, 256}});
    const Value y = mean(exp(matmul(x, x) * 0.01F));
    graph.rename(y, "y");
    return compile(graph, {&y, 1}, std::make_shared<Variables>(device, 1));
  }
  Program program;
};

}  // namespace

TEST_CASE("what a forked child inherits of a device throws, whatever is called first", "[device][fork]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Work work(device);
    const std::string before = work.result();
    const BufferPtr buffer = device->allocate(64);
    const StagingPtr staging = device->allocate_staging(64);
    const EventPtr event = device->record();
    std::vector<std::byte> bytes(64);
    const std::vector<std::function<void()>> calls{
        [&] { work.program.run(); },
        [&] { static_cast<void>(work.program.read("y")); },
        [&] {
          work.program.write("x", Tensor(DType::f32, Shape{256, 256}));
        },
        [&] { static_cast<void>(work.program.run_traced()); },
        [&] { static_cast<void>(device->allocate(64)); },
        [&] { static_cast<void>(device->allocate_staging(64)); },
        [&] { device->write(*buffer, 0, bytes); },
        [&] { device->read(*buffer, 0, bytes); },
        [&] { device->fill(*buffer, 0, 64, 0); },
        [&] { static_cast<void>(device->write_async(*buffer, 0, staging, 64, nullptr)); },
        [&] { device->finish(); },
        [&] { static_cast<void>(Work::made(device)); },
    };
    const std::string all = in_child([&] {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        try {
          calls[i]();
        } catch (const DeviceError& error) {
          if (std::string(error.what()).find("was opened before this process was forked") != std::string::npos)
            continue;
          throw;
        }
        return "call " + std::to_string(i) + " did not throw";
      }
      return std::string("all threw");
    });
    CHECK(all == "all threw");
    CHECK_THAT(in_child([&] { return work.result(); }),
               contains("the device " + device->info().id) && contains("exec"));
    CHECK(work.result() == before);  // the parent goes on
  }
}

TEST_CASE("a trainer that a child inherits throws", "[device][fork]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 16, 0);
    Trainer trainer{nn::Sequential{nn::Flatten{}, nn::Linear{64, 3}}, loss::cross_entropy, optim::Sgd{.lr = 0.1},
                    device};
    trainer.fit(data, {.epochs = 1, .batch = 8});
    const TemporaryFolder folder;
    for (const bool exits : {false, true}) {
      CHECK_THAT(
          in_child([&] { return std::to_string(trainer.fit(data, {.epochs = 1, .batch = 8}).epochs[0].loss); }, exits),
          contains("DeviceError") && contains("forked"));
    }
    CHECK_THAT(in_child([&] { return std::to_string(trainer.evaluate(data).loss); }), contains("DeviceError"));
    CHECK_THAT(in_child([&] {
                 trainer.save(folder / "a.safetensors");
                 return std::string("saved");
               }),
               contains("DeviceError"));
    trainer.fit(data, {.epochs = 1, .batch = 8});
  }
}

TEST_CASE("a child opens the CPU anew and computes the same, and its children too", "[device][fork]") {
  for (const DevicePtr& device : devices()) {
    if (device->info().id != "cpu") continue;
    Work work(device);
    const std::string before = work.result();
    const auto anew = [] { return Work(Device::open("cpu")).result(); };
    CHECK(in_child(anew) == before);
    CHECK(in_child([&] { return in_child(anew); }) == before);
    CHECK(in_child([&] {
            Work own(Device::open("cpu"));
            static_cast<void>(own.result());
            return in_child([&] { return own.result(); });
          }).starts_with("DeviceError"));
    std::string other;  // from another thread than that which computed
    std::thread([&] { other = in_child(anew); }).join();
    CHECK(other == before);
    CHECK(work.result() == before);
  }
}

TEST_CASE("a child cannot open OpenCL anew where the parent used it, and is told so", "[device][fork]") {
  for (const DevicePtr& device : devices()) {
    if (device->info().backend != "opencl") continue;
    const std::string id = device->info().id;
    CHECK_THAT(in_child([&] { return Device::open(id)->info().name; }),
               contains("DeviceError") && contains("the parent of this process used it before the fork"));
    CHECK_THAT(in_child([] { return Device::open("opencl")->info().name; }), contains("DeviceError"));
    CHECK(in_child([] { return std::to_string(std::ranges::count(Device::list(), "opencl", &DeviceInfo::backend)); }) ==
          "0");
  }
}

TEST_CASE("a child lets go of what it inherited, and ends", "[device][fork]") {
  for (const DevicePtr& listed : devices()) {
    INFO(listed->info().id);
    DevicePtr device = Device::open(listed->info().id);
    auto work = std::make_unique<Work>(device);
    static_cast<void>(work->result());
    StagingPtr staging = device->allocate_staging(64);
    EventPtr event = device->record();
    work->program.run();  // is under way at the fork
    for (const bool exits : {false, true}) {
      CHECK(in_child(
                [&] {
                  event.reset();
                  staging.reset();
                  work.reset();
                  device.reset();
                  return std::string("gone");
                },
                exits) == "gone");
    }
  }
}

TEST_CASE("a child lets go of a loader whose threads it does not have", "[device][fork]") {
  const DevicePtr& device = devices().front();
  const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 64, 0);
  std::vector<data::LoaderSlot> ring;
  for (int i = 0; i < 3; ++i) ring.push_back({device->allocate_staging(8 * 64 * 4), device->allocate_staging(8 * 4)});
  auto loader = std::make_unique<data::Loader>(data, data::LoaderOptions{.batch = 8}, ring);
  loader->start(data::permutation(64, 0, 0));
  std::optional<data::Batch> batch = loader->next();
  CHECK_THAT(in_child([&] { return std::to_string(loader->next()->size()); }), contains("a loader was opened before"));
  CHECK(in_child([&] {
          batch.reset();
          loader.reset();
          return std::string("gone");
        }) == "gone");
  batch = loader->next();
  CHECK(batch->number() == 1);
}
