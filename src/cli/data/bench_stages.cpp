// Rates of stages. Samples come in a random order, as a training reads them.
#include "concord/cli/data/bench_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "concord/cli/counted.hpp"
#include "concord/cli/data/image_facts.hpp"
#include "concord/cli/data/rows.hpp"
#include "concord/core/check.hpp"

namespace concord::cli {
namespace {

/// The samples that are decoded again and again.
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;
constexpr std::int64_t kKeptSamples = 2000;

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Whether `work` does not throw that a sample is damaged.
template <class Work>
bool is_readable(const Work& work) {
  try {
    work();
    return true;
  } catch (const FormatError&) {
    return false;
  } catch (const IoError&) {
    return false;
  }
}

void require_some(const StageRate& rate) {
  CONCORD_CHECK(rate.samples > 0, FormatError,
                "none of {} samples that were tried can be read; `concord data check` says why", rate.bad);
}

class HostMemory final : public Staging {
 public:
  explicit HostMemory(std::size_t bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes() override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

std::size_t bytes_of_columns(const std::vector<ColumnSpec>& columns) {
  std::size_t bytes = 0;
  for (const ColumnSpec& column : columns) bytes += column.spec.bytes();
  return bytes;
}

const StageRate* find_rate(const std::vector<StageRate>& rates, std::string_view stage, int threads) {
  for (const StageRate& rate : rates) {
    if (rate.stage == stage && rate.threads == threads) return &rate;
  }
  return nullptr;
}

}  // namespace

double StageRate::samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
double StageRate::megabytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e6 : 0; }

StageRate rate_of_reading(const data::Records& records, int threads, const BenchHow& how) {
  struct Done {
    std::int64_t samples = 0;
    std::set<std::int32_t> bad;
    std::uint64_t bytes = 0;
  };
  const std::vector<std::int32_t> order = data::permutation(records.size(), how.seed);
  std::vector<Done> done(static_cast<std::size_t>(threads));
  std::vector<ImageMemory> memories(done.size());
  const Stopwatch watch;
  for_rows(threads, threads, [&](std::int64_t thread, std::size_t /*worker*/) {
    Done& mine = done[static_cast<std::size_t>(thread)];
    std::vector<std::byte>& memory = memories[static_cast<std::size_t>(thread)].file;
    for (auto i = static_cast<std::size_t>(thread); watch.seconds() < how.seconds; i += done.size()) {
      const std::int32_t row = order[i % order.size()];
      const bool is_good = is_readable([&] { mine.bytes += records.read(row, memory).bytes.size(); });
      if (is_good) ++mine.samples;
      if (!is_good) mine.bad.insert(row);
    }
  });
  StageRate rate{.stage = "read", .threads = threads, .seconds = watch.seconds()};
  std::set<std::int32_t> bad;
  for (Done& one : done) {
    rate.samples += one.samples;
    rate.bytes += one.bytes;
    bad.merge(one.bad);
  }
  rate.bad = std::ssize(bad);
  require_some(rate);
  return rate;
}

StageRate rate_of_decoding(const data::Records& records, const BenchHow& how) {
  /// Stored samples in memory.
  class Kept final : public data::Records {
   public:
    std::vector<std::pair<std::vector<std::byte>, std::optional<data::RawImage>>> samples;
    [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(samples.size()); }
    [[nodiscard]] std::string name_of(std::int64_t row) const override { return fmt::format("sample {}", row); }
    [[nodiscard]] data::Record read(std::int64_t row, std::vector<std::byte>& /*scratch*/) const override {
      const auto& sample = samples[static_cast<std::size_t>(row)];
      return {sample.first, sample.second};
    }
  } kept;
  StageRate rate{.stage = "decode"};
  ImageMemory memory;
  std::size_t bytes = 0;
  const Stopwatch filling;
  for (const std::int32_t row : data::permutation(records.size(), how.seed)) {
    if (bytes >= kKeptBytes || kept.size() >= kKeptSamples) break;
    const bool is_good = is_readable([&] {
      const DecodedImage image = read_image(records, row, memory);
      kept.samples.emplace_back(std::vector(image.record.bytes.begin(), image.record.bytes.end()), image.record.raw);
      bytes += image.record.bytes.size();
    });
    if (!is_good) ++rate.bad;
    if (kept.size() > 0 && filling.seconds() > how.seconds) break;
  }
  rate.samples = kept.size();
  require_some(rate);
  rate.samples = 0;
  const Stopwatch watch;
  for (std::int64_t i = 0; watch.seconds() < how.seconds; ++i) {
    rate.bytes += read_image(kept, i % kept.size(), memory).record.bytes.size();
    ++rate.samples;
  }
  rate.seconds = watch.seconds();
  return rate;
}

StageRate rate_of_samples(const Samples& samples, const BenchHow& how) {
  std::vector<std::vector<std::byte>> memory;
  for (const ColumnSpec& column : samples.feature_specs()) memory.emplace_back(column.spec.bytes());
  for (const ColumnSpec& column : samples.label_specs()) memory.emplace_back(column.spec.bytes());
  const std::vector<std::span<std::byte>> columns(memory.begin(), memory.end());
  const std::vector<std::int32_t> order = data::permutation(samples.size(), how.seed);
  StageRate rate{.stage = "sample"};
  const std::size_t bytes = bytes_of_columns(samples.feature_specs());
  std::set<std::int32_t> bad;
  const Stopwatch watch;
  for (std::size_t i = 0; watch.seconds() < how.seconds; ++i) {
    const std::int32_t row = order[i % order.size()];
    const auto epoch = static_cast<std::uint32_t>(i / order.size());
    const bool is_good = is_readable([&] { samples.read(row, columns, {how.seed, epoch, row}); });
    if (!is_good) {
      bad.insert(row);
      continue;
    }
    ++rate.samples;
    rate.bytes += bytes;
  }
  rate.seconds = watch.seconds();
  rate.bad = std::ssize(bad);
  require_some(rate);
  return rate;
}

StageRate rate_of_loader(const SharedSamples& samples, int threads, const BenchHow& how) {
  data::LoaderOptions options{.batch = how.batch, .threads = threads, .seed = how.seed};
  options.bad_samples = data::BadSamples::skip;
  const auto rows = static_cast<std::size_t>(how.batch);
  std::vector<data::LoaderSlot> ring(4);
  for (data::LoaderSlot& slot : ring) {
    slot.features = std::make_shared<HostMemory>(rows * bytes_of_columns(samples->feature_specs()));
    slot.labels = std::make_shared<HostMemory>(rows * bytes_of_columns(samples->label_specs()));
  }
  data::Loader loader(samples, options, std::move(ring));
  StageRate rate{.stage = "loader", .threads = threads};
  const Stopwatch watch;
  for (std::uint32_t epoch = 0; watch.seconds() < how.seconds; ++epoch) {
    loader.start(data::permutation(samples->size(), how.seed, epoch), epoch);
    while (watch.seconds() < how.seconds) {
      const auto batch = loader.next();
      if (!batch) break;
      rate.samples += batch->size();
      rate.bytes += batch->feature_bytes();
    }
  }
  rate.seconds = watch.seconds();
  rate.bad = loader.skipped();
  return rate;
}

std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int threads = 1; threads < most; threads *= 2) counts.push_back(threads);
  counts.push_back(most);
  return counts;
}

std::string limit_of(const std::vector<StageRate>& rates, int processors) {
  const StageRate* const sample = find_rate(rates, "sample", 1);
  const StageRate* const one = find_rate(rates, "read", 1);
  const StageRate* const decode = find_rate(rates, "decode", 1);
  const StageRate* best = nullptr;
  int most = 1;
  for (const StageRate& rate : rates) {
    if (rate.stage == "loader" && (best == nullptr || rate.samples_per_second() > best->samples_per_second())) {
      best = &rate;
    }
    most = std::max(most, rate.threads);
  }
  if (best == nullptr || sample == nullptr) return {};
  const double whole = 1 / sample->samples_per_second();  // seconds a sample of one core
  std::string text = fmt::format("One core makes {:.0f} samples a second", sample->samples_per_second());
  std::string dearest = "the samples themselves";
  if (one != nullptr && decode != nullptr) {
    // A JPEG may be decoded in part, and be cheaper than a whole one.
    const double reading = std::min(1.0, 1 / one->samples_per_second() / whole);
    const double decoding = std::min(1 - reading, 1 / decode->samples_per_second() / whole);
    const double rest = 1 - reading - decoding;
    text += fmt::format(
        ": of its time {:.0f} % is reading, {:.0f} % decoding, {:.0f} % the rest (crop, resize, augmentation)",
        100 * reading, 100 * decoding, 100 * rest);
    dearest = decoding >= reading && decoding >= rest ? "decoding" : reading >= rest ? "reading" : "the rest";
  }
  const StageRate* const reading = find_rate(rates, "read", most);
  const double share = best->samples_per_second() / (sample->samples_per_second() * std::min(most, processors));
  text += fmt::format(". The loader's best is {:.0f} a second with {}. ", best->samples_per_second(),
                      counted(best->threads, "thread"));
  if (reading != nullptr && best->samples_per_second() > 0.8 * reading->samples_per_second()) {
    return text + fmt::format("Limit: reading; the storage gives {:.0f} samples ({:.0f} MB) a second.",
                              reading->samples_per_second(), reading->megabytes_per_second());
  }
  if (most < processors && share > 0.7) {
    return text + fmt::format("Limit: {}, on {} of {} processors; more --loader-threads make it faster.", dearest, most,
                              processors);
  }
  if (share > 0.7) {
    return text + fmt::format("Limit: the processors ({:.0f} % of what {} can do); most of it is {}.", 100 * share,
                              std::min(most, processors), dearest);
  }
  return text + fmt::format(
                    "Limit: neither the storage nor the processors alone ({:.0f} % of what {} can do): memory, "
                    "or other programs on this machine.",
                    100 * share, std::min(most, processors));
}

}  // namespace concord::cli
