// Out of memory: what the message says can be relied on.
#include <regex>

#include "concord/compile/memory_need.hpp"
#include "concord_test.hpp"
#include "files.hpp"
#include "small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The CPU, with less memory than it has, or with kernels that take fewer samples. Allocations are not refused: only
/// what is said of the memory counts.
class Small final : public Device {
 public:
  Small(DevicePtr device, std::uint64_t memory, std::uint64_t max_allocation, std::int64_t most_samples)
      : device_(std::move(device)), base_(device_->allocated()), info_(device_->info()), most_samples_(most_samples) {
    info_.memory = memory;
    info_.max_allocation = max_allocation;
  }
  const DeviceInfo& info() const override { return info_; }
  BufferPtr allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  std::size_t allocated() const override { return device_->allocated() - base_; }
  std::size_t peak_allocated() const override { return device_->peak_allocated(); }
  StagingPtr allocate_staging(std::size_t bytes) override { return device_->allocate_staging(bytes); }
  void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override {
    device_->write(dst, offset, bytes);
  }
  void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    device_->read(src, offset, bytes);
  }
  void copy(const Buffer& src, std::size_t from, Buffer& dst, std::size_t to, std::size_t bytes) override {
    device_->copy(src, from, dst, to, bytes);
  }
  void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) override {
    device_->fill(dst, offset, bytes, pattern);
  }
  EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                       const EventPtr& after) override {
    return device_->write_async(dst, offset, staging, bytes, after);
  }
  EventPtr record() override { return device_->record(); }
  void wait_for(const EventPtr& event) override { device_->wait_for(event); }
  PreparedKernel prepare(const KernelRequest& request) override {
    for (const TensorSpec& input : request.inputs) {
      const bool is_images = input.shape.rank() == 4 && input.shape[2] > 3;  // no weights
      if (is_images && input.shape[0] > most_samples_) throw NotSupported("more samples than it can number");
    }
    return device_->prepare(request);
  }
  std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) override {
    return device_->prepare_reorder(spec, from, to);
  }
  bool supports_epilogue(const Operator& op, std::span<const TensorSpec> inputs, const TensorSpec& output,
                         const Expression& epilogue, std::span<const TensorSpec> extra,
                         Precision precision) const override {
    return device_->supports_epilogue(op, inputs, output, epilogue, extra, precision);
  }
  void finish() override { device_->finish(); }
  double timed(Launch& launch) override { return device_->timed(launch); }
  void enqueue_recorded(Launch& launch, timeline::Label label) override { device_->enqueue_recorded(launch, label); }

 private:
  DevicePtr device_;
  std::size_t base_;
  DeviceInfo info_;
  std::int64_t most_samples_;
};

Trainer image_trainer(std::uint64_t memory, std::uint64_t max_allocation, std::int64_t most_samples = 1 << 30) {
  const auto device = std::make_shared<Small>(devices().front(), memory, max_allocation, most_samples);
  return Trainer{image_net(), loss::cross_entropy, optim::Sgd{.lr = 0.01}, device, {.resident_fraction = 0}};
}

Dataset images(std::int64_t samples) { return data::synthetic(Shape{1, 28, 28}, 3, samples, 0); }

std::string message_of(Trainer& trainer, const Dataset& data, std::int64_t batch) {
  try {
    trainer.fit(data, {.batch = batch, .max_steps = 1});
  } catch (const OutOfMemory& error) {
    return error.what();
  }
  return "no OutOfMemory";
}

/// The largest batch that the message says; 0 when it says none.
std::int64_t batch_in(const std::string& message) {
  std::smatch match;
  return std::regex_search(message, match, std::regex("largest batch that fits is ([0-9]+)")) ? std::stol(match[1]) : 0;
}

}  // namespace

TEST_CASE("out of memory says the largest batch that fits, and it fits", "[train]") {
  const bool by_allocation = GENERATE(false, true);
  const std::uint64_t limit = 4 << 20;
  const auto trainer_of = [&] {
    return by_allocation ? image_trainer(std::uint64_t{1} << 34, limit / 4) : image_trainer(limit, limit * 16);
  };
  const Dataset data = images(1024);
  Trainer trainer = trainer_of();
  const std::string message = message_of(trainer, data, 1024);
  INFO(message);
  CHECK_THAT(message, contains(by_allocation ? "at once" : "in addition to the"));
  const std::int64_t batch = batch_in(message);
  REQUIRE(batch >= 2);
  REQUIRE(batch < 1024);
  CHECK_NOTHROW(trainer.fit(data, {.batch = batch, .max_steps = 1}));
  Trainer larger = trainer_of();
  CHECK_THAT(message_of(larger, data, batch + batch / 10 + 1), contains("largest batch"));
}

TEST_CASE("out of memory says when not even one sample fits", "[train]") {
  Trainer trainer = image_trainer(1 << 10, 1 << 10);
  CHECK_THAT(message_of(trainer, images(64), 64), contains("Not even a batch of one sample fits"));
}

TEST_CASE("validation takes the training's batch where there is no memory for a larger one", "[train]") {
  const Dataset data = images(512);
  Trainer small = image_trainer(2 << 20, 1 << 30), large = image_trainer(std::uint64_t{1} << 34, 1 << 30);
  CHECK_THROWS_AS(small.evaluate(data, {.batch = 256}), OutOfMemory);
  const FitOptions options{.batch = 8, .validate = data, .max_steps = 64};
  const auto validation = small.fit(data, options).epochs.at(0).validation;
  REQUIRE(validation.has_value());
  CHECK(validation->samples == 512);
  CHECK(validation->loss == Approx(large.fit(data, options).epochs.at(0).validation->loss).epsilon(1e-5));
  CHECK_THROWS_AS(small.fit(data, {.batch = 256, .validate = data}), OutOfMemory);
}

TEST_CASE("a batch that kernels cannot number says the largest that they can", "[train]") {
  const std::uint64_t much = std::uint64_t{1} << 34;
  const Dataset data = images(1024);
  const auto refusal = [&](Trainer& trainer) {
    return message_of<NotSupported>([&] { trainer.fit(data, {.batch = 1024, .max_steps = 1}); });
  };
  Trainer trainer = image_trainer(much, much, 200), none = image_trainer(much, much, 0);
  const std::string message = refusal(trainer);
  INFO(message);
  CHECK(contains(message, "more samples than it can number. The largest batch that fits is 200"));
  CHECK_NOTHROW(trainer.fit(data, {.batch = 200, .max_steps = 1}));
  CHECK_FALSE(contains(refusal(none), "batch"));  // that is not for the batch
}

TEST_CASE("the need of a program is what it allocates", "[compile]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    Graph graph;
    nn::Sequential net = image_net();
    const Value x = graph.input("x", {DType::f32, Shape{8, 1, 28, 28}});
    const Value labels = graph.input("labels", {DType::i32, Shape{8}});
    const Value loss = loss::cross_entropy(net(x), labels);
    optim::minimize(loss, optim::Adam{});
    const auto variables = std::make_shared<Variables>(device, 0);
    const MemoryNeed need = memory_need(graph, {&loss, 1}, *variables, MemoryDetail::kernels);
    CHECK(need.new_variables > 0);
    const std::size_t before = device->allocated();
    const Program program = compile(graph, {&loss, 1}, variables);
    CHECK(program.memory() == need.arena);
    CHECK(device->allocated() - before >= need.total());
    CHECK(static_cast<double>(device->allocated() - before) <= 1.01 * static_cast<double>(need.total()));
    CHECK(memory_need(graph, {&loss, 1}, *variables, MemoryDetail::kernels).new_variables == 0);
    CHECK(memory_need(graph, {&loss, 1}, *variables, MemoryDetail::values).arena > 0);
  }
}

TEST_CASE("the largest batch is found by its need alone", "[compile]") {
  const auto need = [](std::int64_t batch) -> std::size_t {
    if (batch > 50) throw OutOfMemory("one value is too large");
    return static_cast<std::size_t>(100 + batch * 10);
  };
  CHECK(largest_batch(1000, 350, need) == 25);
  CHECK(largest_batch(1000, 10000, need) == 50);
  CHECK(largest_batch(1000, 100, need) == 0);
  CHECK(largest_batch(1, 1000, need) == 0);
}
