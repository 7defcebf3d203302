// Loader: worker threads claim samples of batches in order, each batch with a free slot; the consumer takes the batches
// in the same order.
#include "concord/data/loader.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/process_mark.hpp"
#include "concord/core/timeline.hpp"
#include "concord/data/sample_reader.hpp"

namespace concord::data {
namespace {

/// Samples that a thread claims at a time: so many that the claim costs little beside their bytes.
std::int64_t samples_a_claim(const Samples& samples) {
  constexpr std::size_t kBytes = std::size_t{1} << 16;
  const std::size_t bytes = bytes_of(samples.feature_specs()) + bytes_of(samples.label_specs());
  return static_cast<std::int64_t>(std::max<std::size_t>(1, kBytes / std::max<std::size_t>(bytes, 1)));
}

}  // namespace

/// Shared by the loader, its threads and the batches the consumer holds.
struct LoaderState {
  LoaderState(SharedSamples samples, LoaderOptions with, std::vector<LoaderSlot> slots)
      : options(std::move(with)),
        ring(std::move(slots)),
        claim(samples_a_claim(*samples)),
        reader(std::move(samples), options),
        filled(ring.size()) {
    for (std::size_t slot = ring.size(); slot-- > 0;) free_slots.push_back(slot);
  }

  const LoaderOptions options;
  const std::vector<LoaderSlot> ring;
  const std::int64_t claim;
  SampleReader reader;

  // Fixed while threads run.
  std::vector<std::int32_t> order;
  std::uint32_t epoch = 0;
  std::int64_t batches = 0;
  std::vector<std::thread> threads;
  ProcessMark process;

  /// The samples of a batch: claimed by threads, then read.
  struct Filled {
    std::int64_t batch = -1;  // none
    std::int64_t claimed = 0, left = 0;
    std::exception_ptr error;  // the first one
  };
  std::mutex mutex;  // guards what follows
  std::condition_variable work_or_end, batch_filled;
  std::vector<std::size_t> free_slots;  // has room for all: what threads do in the end allocates nothing
  std::vector<Filled> filled;           // by slot
  std::size_t current = 0;              // the slot of the batch whose samples are being claimed
  std::int64_t opened = 0, taken = 0;   // batches that have a slot, that the consumer has
  bool stopping = false;

  [[nodiscard]] std::span<const std::int32_t> rows_of(std::int64_t batch) const {
    const auto first = static_cast<std::size_t>(batch * options.batch);
    if (options.merge_last && batch + 1 == batches) return std::span(order).subspan(first);
    return std::span(order).subspan(first, std::min(static_cast<std::size_t>(options.batch), order.size() - first));
  }

  [[nodiscard]] bool has_unclaimed() const {
    const Filled& slot = filled[current];
    return slot.batch >= 0 && slot.claimed < std::ssize(rows_of(slot.batch));
  }
  [[nodiscard]] bool can_open() const { return opened < batches && !free_slots.empty(); }
  [[nodiscard]] bool is_over() const { return stopping || (opened == batches && !has_unclaimed()); }

  /// Gives the next batch a slot. Waiting threads may claim its samples.
  void open_batch() {
    current = free_slots.back();
    free_slots.pop_back();
    filled[current] = {opened, 0, std::ssize(rows_of(opened)), {}};
    ++opened;
    work_or_end.notify_all();
  }

  void work() {
    try {
      timeline::name_thread("loader");
    } catch (const std::bad_alloc&) {  // it stays without a name
    }
    std::unique_lock lock(mutex);
    while (true) {
      work_or_end.wait(lock, [&] { return is_over() || has_unclaimed() || can_open(); });
      if (is_over()) return;
      if (!has_unclaimed()) open_batch();
      const std::size_t slot = current;
      const std::span<const std::int32_t> rows = rows_of(filled[slot].batch);
      const std::int64_t first = filled[slot].claimed;
      const std::int64_t count = std::min(claim, std::ssize(rows) - first);
      filled[slot].claimed += count;
      if (opened == batches && !has_unclaimed()) work_or_end.notify_all();
      lock.unlock();
      std::exception_ptr error;
      try {
        const timeline::Span span("read samples");
        for (std::int64_t i = first; i < first + count; ++i) reader.read(rows, i, ring[slot], epoch);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !filled[slot].error) filled[slot].error = std::move(error);
      filled[slot].left -= count;
      if (filled[slot].left == 0) batch_filled.notify_one();
    }
  }

  /// The slot of a batch whose samples are all read; as many as there are slots when it is not yet.
  [[nodiscard]] std::size_t slot_of(std::int64_t batch) const {
    const auto is_ready = [&](const Filled& slot) { return slot.batch == batch && slot.left == 0; };
    return static_cast<std::size_t>(std::ranges::find_if(filled, is_ready) - filled.begin());
  }

  void release(std::size_t slot) {
    if (process.is_inherited()) return;
    const std::lock_guard lock(mutex);
    free_slots.push_back(slot);
    work_or_end.notify_one();
  }
};

namespace {

void check(const Samples& samples, const LoaderOptions& options, std::span<const LoaderSlot> ring) {
  CONCORD_CHECK(options.batch > 0, ArgumentError, "loader: the batch must be at least 1, got {}", options.batch);
  CONCORD_CHECK(options.threads > 0, ArgumentError, "loader: at least one thread needed, got {}", options.threads);
  CONCORD_CHECK(ring.size() >= 2, ArgumentError, "loader: {} slots, at least 2 needed", ring.size());
  CONCORD_CHECK(!options.merge_last || !options.drop_last, ArgumentError,
                "loader: the last batch is dropped or merged, not both");
  const auto batch = static_cast<std::size_t>(options.merge_last ? 2 * options.batch - 1 : options.batch);
  const std::size_t features = batch * bytes_of(samples.feature_specs());
  const std::size_t labels = batch * bytes_of(samples.label_specs());
  for (const LoaderSlot& slot : ring) {
    CONCORD_CHECK(slot.features && slot.labels, ArgumentError, "loader: a slot without staging");
    CONCORD_CHECK(slot.features->bytes().size() >= features && slot.labels->bytes().size() >= labels, ArgumentError,
                  "loader: a slot has {} + {} bytes, but a batch of {} needs {} + {}", slot.features->bytes().size(),
                  slot.labels->bytes().size(), batch, features, labels);
  }
}

}  // namespace

Loader::Loader(SharedSamples samples, LoaderOptions options, std::vector<LoaderSlot> ring) {
  CONCORD_CHECK(samples, ArgumentError, "a loader needs samples");
  check(*samples, options, ring);
  state_ = std::make_shared<LoaderState>(std::move(samples), std::move(options), std::move(ring));
}

Loader::~Loader() {
  if (state_->process.is_inherited()) {
    abandon(std::move(state_));
  } else {
    stop();
  }
}

void Loader::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->work_or_end.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
  const std::lock_guard lock(state_->mutex);
  for (std::size_t slot = 0; slot < state_->filled.size(); ++slot) {
    if (std::exchange(state_->filled[slot], {}).batch >= 0) state_->free_slots.push_back(slot);
  }
  state_->taken = state_->batches;
}

void Loader::start(std::vector<std::int32_t> order, std::uint32_t epoch) {
  LoaderState& state = *state_;
  state.process.require_own("a loader");
  state.reader.check_rows(order);
  stop();
  state.reader.start(order, epoch);
  const std::int64_t batch = state.options.batch;
  const auto rows = static_cast<std::int64_t>(order.size());
  state.order = std::move(order);
  state.epoch = epoch;
  state.batches = state.options.drop_last ? rows / batch : (rows + batch - 1) / batch;
  if (state.options.merge_last) state.batches = std::max(rows / batch, std::min<std::int64_t>(rows, 1));
  state.opened = state.taken = 0;
  state.stopping = false;
  const std::int64_t threads = std::min<std::int64_t>(state.options.threads, rows);
  try {
    for (std::int64_t i = 0; i < threads; ++i) state.threads.emplace_back([&state] { state.work(); });
  } catch (const std::system_error& error) {
    CONCORD_CHECK(!state.threads.empty(), Error, "the loader could not start a thread: {}", error.what());
  } catch (const std::bad_alloc&) {
    if (state.threads.empty()) throw;  // else those that there are do it
  }
}

std::optional<Batch> Loader::next() {
  LoaderState& state = *state_;
  state.process.require_own("a loader");
  std::unique_lock lock(state.mutex);
  if (state.taken == state.batches) return std::nullopt;
  const std::int64_t number = state.taken;
  // The next batch has a slot, or one is free for it. Otherwise only the caller could free a slot.
  CONCORD_CHECK(state.opened > number || !state.free_slots.empty(), ArgumentError,
                "loader: all {} slots are held by the caller; release a batch before requesting the next",
                state.ring.size());
  state.batch_filled.wait(lock, [&] { return state.slot_of(number) < state.filled.size(); });
  const std::size_t place = state.slot_of(number);
  if (const std::exception_ptr error = std::exchange(state.filled[place], {}).error) {
    state.free_slots.push_back(place);
    lock.unlock();
    stop();
    std::rethrow_exception(error);
  }
  ++state.taken;
  lock.unlock();
  const LoaderSlot& slot = state.ring[place];
  Batch batch;
  batch.number_ = number;
  batch.size_ = static_cast<std::int64_t>(state.rows_of(number).size());
  batch.features_ = slot.features;
  batch.labels_ = slot.labels;
  batch.feature_bytes_ = static_cast<std::size_t>(batch.size_) * state.reader.feature_bytes();
  batch.label_bytes_ = static_cast<std::size_t>(batch.size_) * state.reader.label_bytes();
  batch.release_ = {nullptr, [keep = state_, index = place](void*) { keep->release(index); }};
  return batch;
}

std::int64_t Loader::batches() const { return state_->batches; }

std::int64_t Loader::skipped() const { return state_->reader.skipped(); }

}  // namespace concord::data
