// Times how fast stored images become batches of a network, through the public interface alone:
//
//   bench_loader SET THREADS SECONDS RESULT
//
//   SET      folder:DIR, tar:PATTERN or lmdb:DIR; or copy:SAMPLES, a copy of so many samples within memory
//   RESULT   f32     a random part resized to 224 × 224, mirrored or not, normalised to f32 by the thread that read it
//            u8      the same as bytes, which is what the device normalises: the way of Concord's own trainings
//            stored  256 × 256 bytes, of images that are stored so: what reading alone takes
//
// Prints JSON. Reads whole epochs in random order, the first without a clock, then others for SECONDS.
// bench/loader_vs_pytorch sets other loaders beside it.
#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "concord/concord.hpp"

namespace {

using namespace concord;

constexpr std::int64_t kBatch = 64, kSide = 224, kStoredSide = 256;
constexpr std::size_t kSlots = 4;
const std::vector<float> kMean = {0.485F, 0.456F, 0.406F}, kDeviation = {0.229F, 0.224F, 0.225F};  // of ImageNet

class HostStaging final : public Staging {
 public:
  explicit HostStaging(std::size_t bytes) : memory_(bytes) {}
  std::span<std::byte> bytes() override { return memory_; }

 private:
  std::vector<std::byte> memory_;
};

/// dst = src·scale + shift.
CONCORD_SIMD void scale_and_shift(const std::uint8_t* src, std::size_t size, float scale, float shift, float* dst) {
  for (std::size_t i = 0; i < size; ++i) dst[i] = static_cast<float>(src[i]) * scale + shift;
}

/// The images of other samples as the f32 that the device would make of them.
class Normalised final : public Samples {
 public:
  explicit Normalised(SharedSamples images) : images_(std::move(images)), image_(images_->feature_specs().front()) {
    name = images_->name;
  }
  std::int64_t size() const override { return images_->size(); }
  std::vector<ColumnSpec> feature_specs() const override {
    ColumnSpec column;
    column.spec = {DType::f32, image_.spec.shape};
    return {column};
  }
  std::vector<ColumnSpec> label_specs() const override { return images_->label_specs(); }
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
            const SampleRandom& random) const override {
    thread_local std::vector<std::byte> bytes;
    thread_local std::vector<std::span<std::byte>> inner;
    bytes.resize(image_.spec.bytes());
    inner.assign(columns.begin(), columns.end());
    inner[0] = bytes;
    images_->read(row, inner, random);
    const std::size_t plane = bytes.size() / kMean.size();
    for (std::size_t c = 0; c < kMean.size(); ++c) {
      scale_and_shift(reinterpret_cast<const std::uint8_t*>(bytes.data()) + c * plane, plane,
                      image_.scale / kDeviation[c], (image_.shift - kMean[c]) / kDeviation[c],
                      reinterpret_cast<float*>(columns[0].data()) + c * plane);
    }
  }

 private:
  SharedSamples images_;
  ColumnSpec image_;
};

SharedSamples open_samples(std::string_view set, std::string_view result) {
  const std::size_t colon = set.find(':');
  const std::string_view kind = set.substr(0, colon);
  const std::string path(set.substr(colon == std::string_view::npos ? set.size() : colon + 1));
  const data::ImageSet images = kind == "tar"    ? data::tar(path)
                                : kind == "lmdb" ? data::lmdb(path)
                                                 : data::folder(path);
  data::ImageTransform transform;
  if (result == "stored") {
    transform.height = transform.width = transform.resize = kStoredSide;
    return images.with(transform);
  }
  transform.height = transform.width = kSide;
  transform.mean = kMean, transform.deviation = kDeviation;
  transform.augmentation = data::parse_augment("rrc,flip");
  const SharedSamples samples = images.with(transform);
  return result == "f32" ? SharedSamples(Normalised(samples)) : samples;
}

struct Clock {
  static double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double cpu_start = cpu_seconds();
};

void print(std::int64_t images, std::size_t bytes, const Clock& clock) {
  fmt::print(R"({{"images": {}, "bytes": {}, "seconds": {:.6f}, "cpu_seconds": {:.6f}, "version": "Concord {}"}})"
             "\n",
             images, bytes, clock.seconds(), Clock::cpu_seconds() - clock.cpu_start, kVersion);
}

/// Runs epochs: the first without a clock. `epoch(number)` returns the bytes that it wrote.
template <class Epoch>
void time_epochs(std::int64_t samples, double seconds, Epoch&& epoch) {
  epoch(0U);
  const Clock clock;
  std::int64_t images = 0;
  std::size_t bytes = 0;
  for (std::uint32_t number = 1; clock.seconds() < seconds; ++number) {
    bytes += epoch(number);
    images += samples;
  }
  print(images, bytes, clock);
}

void time_loader(const SharedSamples& samples, int threads, double seconds) {
  std::size_t features = 0, labels = 0;
  for (const ColumnSpec& column : samples->feature_specs()) features += column.spec.bytes();
  for (const ColumnSpec& column : samples->label_specs()) labels += column.spec.bytes();
  std::vector<data::LoaderSlot> ring;
  for (std::size_t i = 0; i < kSlots; ++i) {
    ring.push_back({std::make_shared<HostStaging>(kBatch * features), std::make_shared<HostStaging>(kBatch * labels)});
  }
  data::Loader loader(samples, {.batch = kBatch, .threads = threads}, std::move(ring));
  time_epochs(samples->size(), seconds, [&](std::uint32_t number) {
    loader.start(data::permutation(samples->size(), 1, number), number);
    std::size_t bytes = 0;
    while (const std::optional<data::Batch> batch = loader.next()) bytes += batch->feature_bytes();
    return bytes;
  });
}

/// Samples of `stored` copied from memory to the slots of a ring, in random order.
void time_copy(std::int64_t samples, int threads, double seconds) {
  constexpr std::size_t kBytes = 3 * kStoredSide * kStoredSide;
  std::vector<std::byte> src(static_cast<std::size_t>(samples) * kBytes, std::byte{1}), dst(kSlots * kBatch * kBytes);
  time_epochs(samples, seconds, [&](std::uint32_t number) {
    const std::vector<std::int32_t> order = data::permutation(samples, 1, number);
    const auto copy = [&](std::size_t first) {
      for (std::size_t i = first; i < order.size(); i += static_cast<std::size_t>(threads)) {
        std::memcpy(dst.data() + i % (kSlots * kBatch) * kBytes,
                    src.data() + static_cast<std::size_t>(order[i]) * kBytes, kBytes);
      }
    };
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) workers.emplace_back(copy, static_cast<std::size_t>(t));
    return src.size();
  });
}

/// 0 for what is no number.
template <class T>
T number_of(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view result = count == 5 ? words[4] : "";
  const auto threads = count == 5 ? number_of<int>(words[2]) : 0;
  const auto seconds = count == 5 ? number_of<double>(words[3]) : 0;
  if ((result != "f32" && result != "u8" && result != "stored") || threads < 1 || !(seconds > 0)) {
    std::fputs("usage: bench_loader SET THREADS SECONDS f32|u8|stored\n", stderr);
    return 2;
  }
  const std::string_view set = words[1];
  try {
    if (set.starts_with("copy:")) {
      time_copy(number_of<std::int64_t>(set.substr(set.find(':') + 1)), threads, seconds);
    } else {
      time_loader(open_samples(set, result), threads, seconds);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "concord: {}\n", error.what());
    return 1;
  }
}
