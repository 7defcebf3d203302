// A stream as Samples: the shuffle buffer, and samples that wait for the thread that fetches them.
#include "concord/data/sample_stream.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/data/columns.hpp"

namespace concord::data {

/// Samples have numbers that go on over epochs: epoch · size + row.
struct SampleStreamState {
  using Bytes = std::vector<std::byte>;  // of all columns, one behind the other

  std::shared_ptr<SampleStream> stream;
  StreamOptions options;
  std::vector<std::size_t> column_bytes;

  std::mutex mutex;                    // guards what follows
  std::optional<std::uint64_t> seed;   // none: the stream has not been started
  std::int64_t pass = 0, in_pass = 0;  // samples of this pass so far
  std::int64_t next = 0;               // the number of the sample that leaves the buffer next
  std::vector<Bytes> buffer;
  std::exception_ptr failed;              // why reads fail until the next start
  std::vector<std::int64_t> wanted;       // the samples that are read after this start; empty: it has not said
  std::map<std::int64_t, Bytes> waiting;  // have left the buffer since another thread was faster

  void restart(std::uint64_t with) {
    seed = with;
    pass = in_pass = next = 0;
    buffer.clear();
    waiting.clear();
    stream->start(0);
  }

  [[nodiscard]] Bytes read_next() {
    Bytes sample(std::reduce(column_bytes.begin(), column_bytes.end()));
    std::vector<std::span<std::byte>> columns;
    std::size_t at = 0;
    for (const std::size_t bytes : column_bytes) {
      columns.push_back(std::span(sample).subspan(at, bytes));
      at += bytes;
    }
    while (!stream->next(columns)) {
      CONCORD_CHECK(in_pass > 0, Error, "pass {} through the stream has no sample", pass);
      in_pass = 0;
      stream->start(++pass);
    }
    ++in_pass;
    return sample;
  }

  /// Takes the next sample out of the buffer. The next one of the source gets its place.
  [[nodiscard]] Bytes take() {
    while (std::ssize(buffer) < options.buffer) buffer.push_back(read_next());
    const std::uint64_t word = Philox(*seed, philox_purpose("data.stream")).word(static_cast<std::uint64_t>(next));
    const auto place = static_cast<std::size_t>(word * buffer.size() >> 32U);
    Bytes sample = read_next();
    sample.swap(buffer[place]);
    ++next;
    return sample;
  }

  [[nodiscard]] Bytes fetch(std::int64_t number, std::uint64_t with) {
    if (failed) std::rethrow_exception(failed);
    const auto found = waiting.find(number);
    if (seed == with && found != waiting.end()) {
      Bytes sample = std::move(found->second);
      waiting.erase(found);
      return sample;
    }
    if (seed != with || number < next) {
      restart(with);
      while (next < number) static_cast<void>(take());
    }
    while (next < number) {
      const std::int64_t passed = next;
      Bytes sample = take();
      if (wanted.empty() || std::ranges::binary_search(wanted, passed)) waiting.emplace(passed, std::move(sample));
    }
    return take();
  }

  /// Calls `work`. After an error every read fails until the next start.
  template <class Work>
  void with_stream(const Work& work) {
    const std::lock_guard lock(mutex);
    try {
      work();
    } catch (const std::bad_alloc&) {
      fail(std::current_exception());
    } catch (const std::exception& error) {  // a damaged sample of a stream has no neighbour that could replace it
      const bool is_known = failed != nullptr;
      fail(is_known ? failed : std::make_exception_ptr(Error(fmt::format("{}: {}", stream->name, error.what()))));
    }
  }

  [[noreturn]] void fail(std::exception_ptr why) {
    seed.reset();
    failed = std::move(why);
    std::rethrow_exception(failed);
  }
};

StreamedSamples::StreamedSamples(std::shared_ptr<SampleStream> stream, StreamOptions options)
    : state_(std::make_shared<SampleStreamState>()) {
  CONCORD_CHECK(stream, ArgumentError, "streamed samples need a stream");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  CONCORD_CHECK(options.epoch >= 1 && options.epoch <= kMost, ArgumentError,
                "{}: an epoch of a stream has 1 to {} samples, got {}", stream->name, kMost, options.epoch);
  CONCORD_CHECK(options.buffer >= 1, ArgumentError, "{}: the buffer of a stream has at least 1 sample, got {}",
                stream->name, options.buffer);
  name = stream->name;
  class_names = stream->class_names;
  for (const std::vector<ColumnSpec>& columns : {stream->feature_specs(), stream->label_specs()}) {
    for (const ColumnSpec& column : columns) state_->column_bytes.push_back(column.spec.bytes());
  }
  state_->options = options;
  state_->stream = std::move(stream);
}

std::int64_t StreamedSamples::size() const { return state_->options.epoch; }

std::vector<ColumnSpec> StreamedSamples::feature_specs() const { return state_->stream->feature_specs(); }

std::vector<ColumnSpec> StreamedSamples::label_specs() const { return state_->stream->label_specs(); }

void StreamedSamples::read(std::int64_t row, std::span<const std::span<std::byte>> columns,
                           const SampleRandom& random) const {
  SampleStreamState::Bytes sample;
  state_->with_stream(
      [&] { sample = state_->fetch(static_cast<std::int64_t>(random.epoch) * size() + row, random.seed); });
  auto from = sample.begin();
  for (const std::span<std::byte> column : columns) {
    const auto end = from + std::min(std::ssize(column), sample.end() - from);
    std::copy(from, end, column.begin());
    from = end;
  }
}

void StreamedSamples::start(const SampleRandom& first, std::span<const std::int32_t> rows) const {
  state_->with_stream([&] {
    state_->failed = nullptr;
    const std::int64_t begin = static_cast<std::int64_t>(first.epoch) * size(), number = begin + first.row;
    state_->wanted.clear();
    for (const std::int32_t row : rows) state_->wanted.push_back(begin + row);
    std::ranges::sort(state_->wanted);
    if (state_->seed != first.seed || number < state_->next) state_->restart(first.seed);
    state_->waiting.clear();
    while (state_->next < number) static_cast<void>(state_->take());
  });
}

}  // namespace concord::data
