// Loader: worker threads claim batches in order, each with a free slot; the consumer takes them in the same order.
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

namespace concord::data {

/// Columns whose rows are gathered one column after another.
struct PackedColumns {
  PackedColumns() = default;
  explicit PackedColumns(std::vector<Column> packed) : columns(std::move(packed)) {}

  [[nodiscard]] static std::size_t row_bytes(const Column& column) {
    return column.values.spec().bytes() / static_cast<std::size_t>(column.values.shape()[0]);
  }
  /// Of one sample.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Column& column : columns) sum += row_bytes(column);
    return sum;
  }
  void copy(std::span<const std::int32_t> rows, std::span<std::byte> to) const {
    for (const Column& column : columns) {
      const std::size_t row = row_bytes(column);
      for (const std::int32_t from : rows) {
        std::ranges::copy(column.values.bytes().subspan(static_cast<std::size_t>(from) * row, row), to.begin());
        to = to.subspan(row);
      }
    }
  }

  std::vector<Column> columns;
};

/// Shared by the loader, its threads and the batches the consumer holds.
struct LoaderState {
  Dataset dataset;
  LoaderOptions options;
  std::vector<LoaderSlot> ring;
  PackedColumns features, labels;
  TensorSpec feature_spec;  // of the first column, which is augmented

  // Fixed while threads run.
  std::vector<std::int32_t> order;
  std::uint32_t epoch = 0;
  std::int64_t batches = 0;
  std::vector<std::thread> threads;
  ProcessMark process;

  struct Filled {
    std::int64_t batch = -1;  // none
    std::exception_ptr error;
  };
  std::mutex mutex;  // guards what follows
  std::condition_variable slot_freed, batch_filled;
  std::vector<std::size_t> free_slots;  // has room for all: what threads do in the end allocates nothing
  std::vector<Filled> filled;           // by slot
  std::int64_t claimed = 0, taken = 0;  // batches given to a thread, to the consumer
  bool stopping = false;

  [[nodiscard]] std::span<const std::int32_t> rows_of(std::int64_t batch) const {
    const auto first = static_cast<std::size_t>(batch * options.batch);
    if (options.merge_last && batch + 1 == batches) return std::span(order).subspan(first);
    return std::span(order).subspan(first, std::min(static_cast<std::size_t>(options.batch), order.size() - first));
  }

  void fill(std::int64_t batch, const LoaderSlot& slot) const {
    const timeline::Span span("fill batch");
    const std::span<const std::int32_t> rows = rows_of(batch);
    features.copy(rows, slot.features->bytes());
    labels.copy(rows, slot.labels->bytes());
    if (!options.augmentation) return;
    const std::size_t bytes = feature_spec.bytes();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      options.augmentation(slot.features->bytes().subspan(i * bytes, bytes), {rows[i], epoch, feature_spec});
    }
  }

  void work() {
    try {
      timeline::name_thread("loader");
    } catch (const std::bad_alloc&) {  // it stays without a name
    }
    std::unique_lock lock(mutex);
    while (true) {
      slot_freed.wait(lock, [&] { return stopping || claimed == batches || !free_slots.empty(); });
      if (stopping || claimed == batches) return;
      const std::int64_t batch = claimed++;
      const std::size_t slot = free_slots.back();
      free_slots.pop_back();
      lock.unlock();
      std::exception_ptr error;
      try {
        fill(batch, ring[slot]);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      filled[slot] = {batch, std::move(error)};
      batch_filled.notify_one();
    }
  }

  /// The slot of a batch that was filled; as many as there are slots when it is not yet.
  [[nodiscard]] std::size_t slot_of(std::int64_t batch) const {
    return static_cast<std::size_t>(std::ranges::find(filled, batch, &Filled::batch) - filled.begin());
  }

  void release(std::size_t slot) {
    if (process.is_inherited()) return;
    const std::lock_guard lock(mutex);
    free_slots.push_back(slot);
    slot_freed.notify_one();
  }
};

namespace {

void check(const Dataset& dataset, const LoaderOptions& options, std::span<const LoaderSlot> ring) {
  CONCORD_CHECK(options.batch > 0, ArgumentError, "loader: the batch must be at least 1, got {}", options.batch);
  CONCORD_CHECK(options.threads > 0, ArgumentError, "loader: at least one thread needed, got {}", options.threads);
  CONCORD_CHECK(ring.size() >= 2, ArgumentError, "loader: {} slots, at least 2 needed", ring.size());
  CONCORD_CHECK(!options.merge_last || !options.drop_last, ArgumentError,
                "loader: the last batch is dropped or merged, not both");
  const auto batch = static_cast<std::size_t>(options.merge_last ? 2 * options.batch - 1 : options.batch);
  const std::size_t features = batch * PackedColumns(dataset.feature_columns()).bytes();
  const std::size_t labels = batch * PackedColumns(dataset.label_columns()).bytes();
  for (const LoaderSlot& slot : ring) {
    CONCORD_CHECK(slot.features && slot.labels, ArgumentError, "loader: a slot without staging");
    CONCORD_CHECK(slot.features->bytes().size() >= features && slot.labels->bytes().size() >= labels, ArgumentError,
                  "loader: a slot has {} + {} bytes, but a batch of {} needs {} + {}", slot.features->bytes().size(),
                  slot.labels->bytes().size(), batch, features, labels);
  }
}

}  // namespace

Loader::Loader(Dataset dataset, LoaderOptions options, std::vector<LoaderSlot> ring)
    : state_(std::make_shared<LoaderState>()) {
  check(dataset, options, ring);
  state_->feature_spec = dataset.feature_spec();
  state_->features = PackedColumns(dataset.feature_columns());
  state_->labels = PackedColumns(dataset.label_columns());
  state_->dataset = std::move(dataset);
  state_->options = std::move(options);
  state_->ring = std::move(ring);
  state_->filled.resize(state_->ring.size());
  for (std::size_t slot = state_->ring.size(); slot-- > 0;) state_->free_slots.push_back(slot);
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
  state_->slot_freed.notify_all();
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
  const auto samples = state.dataset.size();
  for (const std::int32_t row : order) {
    CONCORD_CHECK(row >= 0 && row < samples, ArgumentError, "loader: row {} is outside the {} samples of {}", row,
                  samples, state.dataset.name);
  }
  stop();
  const std::int64_t batch = state.options.batch;
  const auto rows = static_cast<std::int64_t>(order.size());
  state.order = std::move(order);
  state.epoch = epoch;
  state.batches = state.options.drop_last ? rows / batch : (rows + batch - 1) / batch;
  if (state.options.merge_last) state.batches = std::max(rows / batch, std::min<std::int64_t>(rows, 1));
  state.claimed = state.taken = 0;
  state.stopping = false;
  const std::int64_t threads = std::min<std::int64_t>(state.options.threads, state.batches);
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
  // The next batch is claimed, or a slot is free for it. Otherwise only the caller could free a slot.
  CONCORD_CHECK(state.claimed > number || !state.free_slots.empty(), ArgumentError,
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
  batch.feature_bytes_ = static_cast<std::size_t>(batch.size_) * state.features.bytes();
  batch.label_bytes_ = static_cast<std::size_t>(batch.size_) * state.labels.bytes();
  batch.release_ = {nullptr, [keep = state_, index = place](void*) { keep->release(index); }};
  return batch;
}

std::int64_t Loader::batches() const { return state_->batches; }

}  // namespace concord::data
