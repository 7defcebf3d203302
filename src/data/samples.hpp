// Samples: a set of samples that are read one at a time, wherever they come from. Trainer and Loader take any of them.
// Dataset, which is in memory, is the simplest one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {

/// What one sample has of a column, such as an image, a mask or a target.
struct ColumnSpec {
  std::string name;            // the input or output of the network that it belongs to; empty: by its position
  TensorSpec spec;             // of one sample: [C, H, W] for an image, rank 0 for one class index
  float scale = 1, shift = 0;  // a u8 feature u is read as u·scale + shift
  int classes = 0;             // of i32 labels: they are in [0, classes), unless it is 0
  /// Of u8 images, for each channel: the result of scale and shift is read as (x − mean)/deviation. Empty, or one
  /// number for each channel.
  std::vector<float> mean = {}, deviation = {};
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

/// The random numbers of one sample in one epoch. They depend on nothing else, so neither on threads nor on the device.
struct SampleRandom {
  std::uint64_t seed = 0;   // of the training
  std::uint32_t epoch = 0;  // from 0
  std::int32_t row = 0;     // of the sample
  /// 32 random bits. Streams of different purposes and numbers of different index are independent (Philox).
  [[nodiscard]] std::uint32_t word(std::string_view purpose, std::uint64_t index) const;
  /// A number in [0, 1).
  [[nodiscard]] float uniform(std::string_view purpose, std::uint64_t index) const;
};

/// A set of samples with labels. `read` makes a sample ready for the network: it decodes, crops, resizes and augments
/// an image, for example.
///
/// Several threads call the constant functions at the same time.
class Samples {
 public:
  std::string name;                      // for messages and reports
  std::vector<std::string> class_names;  // empty, or one for each class of the first column of labels

  virtual ~Samples() = default;

  /// The number of samples, from 1 to 2^31 − 1.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// The columns that are inputs of the network: u8, f32 or i32. At least one.
  [[nodiscard]] virtual std::vector<ColumnSpec> feature_specs() const = 0;
  /// The columns that are targets: i32 or f32. At least one.
  [[nodiscard]] virtual std::vector<ColumnSpec> label_specs() const = 0;
  /// Writes sample `row`: `columns` has the memory of its features, in order, then of its labels. Throws FormatError or
  /// IoError if the sample is damaged or cannot be read.
  virtual void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
                    const SampleRandom& random) const = 0;

  /// The class of a sample, where the first column of labels is one class and it is known without reading the sample.
  [[nodiscard]] virtual std::optional<std::int32_t> class_of(std::int64_t row) const;
  /// Whether samples can only be read in their order, as those of a stream. Then nothing shuffles them.
  [[nodiscard]] virtual bool is_sequential() const { return false; }
  /// Says which rows are read next, in this order, in the epoch of `first`, which is of the first of them. A stream
  /// goes there, and forgets the samples between them.
  virtual void start(const SampleRandom& first, std::span<const std::int32_t> rows) const;
  /// What messages call a sample, such as the name of its file. By default "sample <row>".
  [[nodiscard]] virtual std::string name_of(std::int64_t row) const;

 protected:
  Samples() = default;
  Samples(const Samples&) = default;
  Samples(Samples&&) = default;
  Samples& operator=(const Samples&) = default;
  Samples& operator=(Samples&&) = default;
};

/// A shared Samples, or none. Any Samples converts to it, and a shared pointer to one.
class SharedSamples {
 public:
  SharedSamples() = default;
  template <std::derived_from<Samples> S>
  SharedSamples(std::shared_ptr<S> samples) : samples_(std::move(samples)) {}
  /// Copies or moves it.
  template <class S>
  requires std::derived_from<std::remove_cvref_t<S>, Samples> SharedSamples(S&& samples)
      : samples_(std::make_shared<std::remove_cvref_t<S>>(std::forward<S>(samples))) {}
  [[nodiscard]] explicit operator bool() const { return samples_ != nullptr; }
  [[nodiscard]] const Samples& operator*() const { return *samples_; }
  [[nodiscard]] const Samples* operator->() const { return samples_.get(); }
  [[nodiscard]] const std::shared_ptr<const Samples>& pointer() const { return samples_; }

 private:
  std::shared_ptr<const Samples> samples_;
};

namespace data {

/// What happens to a sample that Samples::read throws FormatError or IoError for.
enum class BadSamples : std::uint8_t {
  fail,  // the error ends the epoch
  skip   // the next sample of the set that can be read takes its place; a warning names it once
};

}  // namespace data
}  // namespace concord
