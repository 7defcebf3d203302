// Loader: order, determinism, errors and clean ends. Run under ThreadSanitizer too.
#include "concord/data/loader.hpp"

#include <atomic>
#include <new>
#include <numeric>
#include <stdexcept>

#include "concord/core/philox.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

class HostStaging final : public Staging {
 public:
  explicit HostStaging(std::size_t bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes() override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

std::vector<data::LoaderSlot> ring_for(const Dataset& dataset, std::int64_t batch, std::size_t slots) {
  const auto n = static_cast<std::size_t>(batch);
  std::vector<data::LoaderSlot> ring(slots);
  for (data::LoaderSlot& slot : ring) {
    slot.features = std::make_shared<HostStaging>(n * dataset.feature_spec().bytes());
    slot.labels = std::make_shared<HostStaging>(n * dataset.label_spec().bytes());
  }
  return ring;
}

// The bytes of all batches one after the other.
std::string drain(data::Loader& loader) {
  std::string all;
  std::int64_t number = 0;
  while (const auto batch = loader.next()) {
    CHECK(batch->number() == number++);
    for (const auto& [staging, bytes] :
         {std::pair(batch->features(), batch->feature_bytes()), std::pair(batch->labels(), batch->label_bytes())}) {
      all.append(reinterpret_cast<const char*>(staging->bytes().data()), bytes);
    }
  }
  return all;
}

const Dataset& numbers() {
  static const Dataset dataset = data::synthetic({7}, 5, 103, 1);
  return dataset;
}

void add_noise(std::span<std::byte> features, const data::SampleInfo& sample) {
  const Philox random(8, philox_purpose("test.augment"), sample.epoch);
  for (std::size_t i = 0; i < features.size(); ++i) {
    features[i] ^= std::byte(random.word(static_cast<std::uint64_t>(sample.row) * features.size() + i) & 0xff);
  }
}

}  // namespace

TEST_CASE("a loader gives the rows in order, the last batch as long as it is", "[data]") {
  const Dataset& dataset = numbers();
  data::Loader loader(dataset, {.batch = 10, .threads = 3}, ring_for(dataset, 10, 3));
  CHECK_FALSE(loader.next());
  const auto order = data::permutation(dataset.size(), 3);
  loader.start(order);
  CHECK(loader.batches() == 11);
  std::size_t row = 0;
  while (const auto batch = loader.next()) {
    CHECK(batch->size() == (batch->number() == 10 ? 3 : 10));
    for (std::int64_t i = 0; i < batch->size(); ++i, ++row) {
      const auto at = static_cast<std::size_t>(order[row]);
      const auto expected = dataset.features.bytes().subspan(at * 28, 28);
      CHECK(std::ranges::equal(batch->features()->bytes().subspan(static_cast<std::size_t>(i) * 28, 28), expected));
      CHECK(std::ranges::equal(batch->labels()->bytes().subspan(static_cast<std::size_t>(i) * 4, 4),
                               dataset.labels.bytes().subspan(at * 4, 4)));
    }
  }
  CHECK(row == 103);
  CHECK_FALSE(loader.next());
}

TEST_CASE("a loader can leave out the last short batch, and run an empty order", "[data]") {
  data::Loader loader(numbers(), {.batch = 10, .drop_last = true}, ring_for(numbers(), 10, 2));
  loader.start(data::permutation(103, 0));
  CHECK(loader.batches() == 10);
  CHECK(drain(loader).size() == 100 * 32);
  loader.start({});
  CHECK_FALSE(loader.next());
}

TEST_CASE("a loader can merge the last short batch into the one before", "[data]") {
  data::Loader loader(numbers(), {.batch = 10, .merge_last = true}, ring_for(numbers(), 19, 2));
  std::vector<std::int64_t> sizes;
  const auto run = [&](std::int64_t samples) {
    auto order = data::permutation(103, 0);
    order.resize(static_cast<std::size_t>(samples));
    loader.start(order);
    sizes.clear();
    while (const auto batch = loader.next()) sizes.push_back(batch->size());
    return loader.batches();
  };
  CHECK(run(33) == 3);
  CHECK(sizes == std::vector<std::int64_t>{10, 10, 13});
  CHECK(run(20) == 2);
  CHECK(run(7) == 1);
  CHECK(sizes == std::vector<std::int64_t>{7});
  CHECK(run(0) == 0);
  CHECK_THROWS_AS(data::Loader(numbers(), {.batch = 10, .merge_last = true}, ring_for(numbers(), 10, 2)),
                  ArgumentError);
}

TEST_CASE("the bytes of an epoch do not depend on threads or slots", "[data]") {
  std::string expected;
  for (const int threads : {1, 2, 8}) {
    for (const std::size_t slots : {2, 5}) {
      data::Loader loader(numbers(), {.batch = 8, .threads = threads, .augmentation = add_noise},
                          ring_for(numbers(), 8, slots));
      loader.start(data::permutation(103, 6, 2), 2);
      const std::string all = drain(loader);
      if (expected.empty()) expected = all;
      CHECK(all == expected);
      loader.start(data::permutation(103, 6, 2), 3);  // another epoch, other noise
      CHECK(drain(loader) != expected);
    }
  }
}

TEST_CASE("two loaders over one data set work side by side", "[data]") {
  data::Loader a(numbers(), {.batch = 8}, ring_for(numbers(), 8, 3));
  data::Loader b(numbers(), {.batch = 8}, ring_for(numbers(), 8, 3));
  a.start(data::permutation(103, 1));
  b.start(data::permutation(103, 1));
  while (true) {
    const auto left = a.next();
    const auto right = b.next();
    REQUIRE(left.has_value() == right.has_value());
    if (!left) break;
    CHECK(std::ranges::equal(left->features()->bytes().first(left->feature_bytes()),
                             right->features()->bytes().first(right->feature_bytes())));
  }
}

TEST_CASE("an epoch can be resumed in its middle", "[data]") {
  data::Loader loader(numbers(), {.batch = 10}, ring_for(numbers(), 10, 2));
  const auto order = data::permutation(103, 5);
  loader.start(order);
  const std::string whole = drain(loader);
  loader.start({order.begin() + 40, order.end()});
  CHECK(drain(loader) == whole.substr(40 * 32));
}

TEST_CASE("an exception of an augmentation reaches the consumer at its batch", "[data]") {
  const auto fail = [](std::span<std::byte>, const data::SampleInfo& sample) {
    if (sample.row == 25) throw std::runtime_error("row 25");
  };
  data::Loader loader(numbers(), {.batch = 10, .threads = 4, .augmentation = fail}, ring_for(numbers(), 10, 4));
  std::vector<std::int32_t> order(103);
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < 3; ++round) {
    loader.start(order);
    CHECK(loader.next()->number() == 0);
    CHECK(loader.next()->number() == 1);
    CHECK(message_of<std::runtime_error>([&] { (void)loader.next(); }) == "row 25");
    CHECK_FALSE(loader.next());
  }
  loader.start({order.begin(), order.begin() + 20});  // it still works
  CHECK(drain(loader).size() == 20 * 32);
}

TEST_CASE("memory that runs out in threads of a loader ends its epoch", "[data]") {
  for (const int threads : {1, 3}) {
    data::LoaderOptions options{.batch = 4, .threads = threads};
    std::atomic<bool> is_scarce = true;
    options.augmentation = [&](std::span<std::byte>, const data::SampleInfo& sample) {
      if (is_scarce && sample.row % 5 == 4) throw std::bad_alloc();
    };
    data::Loader loader(numbers(), options, ring_for(numbers(), 4, 3));
    loader.start(data::permutation(103, 1));
    CHECK_THROWS_AS(drain(loader), std::bad_alloc);
    is_scarce = false;
    loader.start(data::permutation(103, 1));
    CHECK_FALSE(drain(loader).empty());
  }
}

TEST_CASE("a loader can be dropped or restarted in the middle of an epoch", "[data]") {
  std::optional<data::Batch> kept;
  {
    data::Loader loader(numbers(), {.batch = 4, .threads = 4}, ring_for(numbers(), 4, 3));
    for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
      loader.start(data::permutation(103, 2, epoch), epoch);
      for (std::uint32_t i = 0; i < epoch % 5; ++i) kept = loader.next();
    }
  }
  REQUIRE(kept);
  CHECK(kept->size() == 4);  // a batch outlives its loader
}

TEST_CASE("holding every slot is refused instead of waiting for ever", "[data]") {
  data::Loader loader(numbers(), {.batch = 4}, ring_for(numbers(), 4, 2));
  loader.start(data::permutation(103, 2));
  auto a = loader.next();
  const auto b = loader.next();
  CHECK(contains(message_of<ArgumentError>([&] { (void)loader.next(); }), "all 2 slots are held"));
  a.reset();
  CHECK(loader.next()->number() == 2);
}

TEST_CASE("a loader checks what it is given", "[data]") {
  const auto refused = [](data::LoaderOptions options, std::int64_t slot_batch, std::size_t slots) {
    return message_of<ArgumentError>(
        [&] { const data::Loader loader(numbers(), std::move(options), ring_for(numbers(), slot_batch, slots)); });
  };
  CHECK(contains(refused({.batch = 0}, 4, 2), "the batch must be at least 1, got 0"));
  CHECK(contains(refused({.batch = 4, .threads = 0}, 4, 2), "at least one thread needed, got 0"));
  CHECK(contains(refused({.batch = 4}, 4, 1), "1 slots"));
  CHECK(contains(refused({.batch = 5}, 4, 2), "a slot has 112 + 16 bytes, but a batch of 5 needs 140 + 20"));
  data::Loader loader(numbers(), {.batch = 4}, ring_for(numbers(), 4, 2));
  CHECK(contains(message_of<ArgumentError>([&] { loader.start({0, 103}); }), "row 103 is outside"));
}
